// Where a playground can begin.

import type { LastRanking } from "../last-ranking.js";
import type { Science } from "../science.js";
import { fromLevels, type State } from "./state.js";

export interface Preset {
  /** A stable name for tests and links. */
  readonly name: string;
  readonly title: string;
  /** What to look for. */
  readonly note: string;
  make(science: Science): State;
}

/** The two orders of HAPPIER, Fig. 8, as shared levels. */
export const FIG_8 = { first: [2, 3, 0, 1, 3], second: [1, 3, 0, 2, 3] } as const;

/** HAPPIER, Fig. 1: the same AP twice, and two values of H-AP, with the relevance of eq. 4. */
export const FIG_1 = { ap: 0.9, h_ap: [0.94, 0.68] as [number, number], size: 17, depth: 3 };

export const PRESETS: readonly Preset[] = [
  {
    name: "fig8-first",
    title: "Five results",
    note: "AP sees only the ranks 2 and 5. Move the others and watch which score notices.",
    make: () => fromLevels(FIG_8.first),
  },
  {
    name: "fig8-second",
    title: "The same five, a worse mistake",
    note: "A distant relation stands first, and the near one only fourth.",
    make: () => fromLevels(FIG_8.second),
  },
  {
    name: "fig8",
    title: "Both, side by side",
    note: "HAPPIER, Fig. 8: one AP, two values of H-AP.",
    make: () => fromLevels(FIG_8.first, FIG_8.second),
  },
  {
    name: "fig1",
    title: "AP 0.9 twice",
    note: "HAPPIER, Fig. 1: mistakes with cousins against mistakes with strangers, by the relevance of eq. 4. The paper does not print whole rankings, so a search found these for its numbers.",
    make: (science) => {
      const relevance = { kind: "hierarchical_ap", alpha: 1 } as const;
      const { first, second } = science.pair({ ...FIG_1, relevance });
      return { ...fromLevels(first, second, FIG_1.depth), relevance: relevance.kind };
    },
  },
];

/** The ranking that the reader has just got for a picture. */
export const fromLastRanking = ({ levels, shared }: LastRanking): State => fromLevels(shared, null, levels);
