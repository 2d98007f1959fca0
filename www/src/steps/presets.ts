// Items to begin with, each with a sentence that says what to see. The order of the items is that of their scores.

import type { LossName } from "./losses.js";

export interface Preset {
  readonly name: string;
  readonly title: string;
  readonly says: string;
  readonly scores: readonly number[];
  readonly levels: readonly number[];
  /** The item to look at first. */
  readonly item: number;
  /** The losses shown; the reader follows the first one. */
  readonly losses: readonly [LossName, ...LossName[]];
}

export const PRESETS: readonly [Preset, ...Preset[]] = [
  {
    name: "mixed",
    item: 2,
    title: "A mixed list",
    says: "Relatives and strangers lie between the items of the query’s own species. Every loss pulls at them in its own way.",
    scores: [0.8, 0.77, 0.74, 0.72, 0.69, 0.66, 0.62],
    levels: [1, 2, 0, 2, 1, 0, 2],
    losses: ["smooth_ap", "sup_ap", "hap_surrogate"],
  },
  {
    name: "contradiction",
    item: 1,
    title: "Contradictory gradients",
    says: "A stranger ranks first, and both items of the query’s species should rise. Smooth-AP pushes one of them up and the other down, with the same strength. SupAP and the H-AP surrogate push both up. (ROADMAP, figure 8.)",
    scores: [0.74, 0.61, 0.6],
    levels: [0, 2, 2],
    losses: ["smooth_ap", "sup_ap", "hap_surrogate_text"],
  },
  {
    name: "vanishing",
    item: 0,
    title: "Vanishing gradients",
    says: "The order is wrong, but the scores lie far apart, where a sigmoid is flat. Smooth-AP moves nothing at all. SupAP and the H-AP surrogate have a line there, and pull the stranger down.",
    scores: [0.85, 0.7, 0.55],
    levels: [0, 2, 2],
    losses: ["smooth_ap", "sup_ap", "hap_surrogate_text"],
  },
  {
    name: "no-bound",
    item: 1,
    title: "No upper bound",
    says: "Four items of the query’s species score almost the same, so that each counts the others below it as half above. Smooth-AP is then less than 1 − AP: it says that the ranking is better than it is. SupAP and the H-AP surrogate are never less than 1 − AP.",
    scores: [0.7, 0.55, 0.549, 0.548, 0.547],
    levels: [0, 2, 2, 2, 2],
    losses: ["smooth_ap", "sup_ap", "hap_surrogate_text"],
  },
  {
    name: "negative",
    item: 1,
    title: "A negative H-rank",
    says: "A relative ranks above every item of the query’s species. Below 0 the lower step falls without limit, so the relative’s smooth H-rank is negative, and the loss gets smaller if more items rank above it: the stranger in second place is pushed up. With a constant H-rank it is pushed down.",
    scores: [0.82, 0.79, 0.7, 0.62, 0.6, 0.58, 0.56],
    levels: [1, 0, 0, 2, 2, 2, 2],
    losses: ["hap_surrogate_text", "hap_surrogate"],
  },
  {
    name: "relatives",
    item: 3,
    title: "What AP does not see",
    says: "The query’s species ranks first, so AP is 1 and the losses of AP have almost nothing left to do. The surrogates of H-AP go on: they pull relatives above strangers.",
    scores: [0.8, 0.78, 0.7, 0.66, 0.62, 0.6],
    levels: [2, 2, 0, 1, 0, 1],
    losses: ["sup_ap", "hap_surrogate_text"],
  },
];

export const presetOf = (name: string): Preset => PRESETS.find((preset) => preset.name === name) ?? PRESETS[0];
