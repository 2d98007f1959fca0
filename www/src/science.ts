// The science of the page, computed by akin-core as a small wasm module (crate akin-science) on the main thread.
// Bad input throws a `Failure`.

import type {
  BatchItems,
  GapBounds,
  Goal,
  Move,
  Pair,
  PairRequest,
  QueryLoss,
  QueryLossSetting,
  RankingInput,
  ScoredItems,
  Scores,
  ScoreSettings,
  StepCurve,
  StepDefaults,
  StepSetting,
} from "./messages/science.js";
import { pageFile } from "./page-file.js";

/** Settings of which any may be left out; core has a default for each. The kind is always given. */
export type Given<Settings> = Settings extends readonly unknown[]
  ? Settings
  : Settings extends object
    ? { [Key in keyof Settings as Key extends "kind" ? Key : never]: Settings[Key] } & {
        [Key in keyof Settings as Key extends "kind" ? never : Key]?: Given<Settings[Key]>;
      }
    : Settings;

export interface Science {
  score(ranking: RankingInput, settings: ScoreSettings): Scores;
  /** Moves the item in place `from` of the list to place `to`, both counted from 0. */
  move(ranking: RankingInput, settings: ScoreSettings, from: number, to: number): Move;
  /** The best order for a goal: for each place, the place of its item in the given list. Tied items count in the order of the tie policy. */
  order(ranking: RankingInput, settings: ScoreSettings, goal: Goal): number[];
  /** Two rankings of the same items, as shared levels, whose scores are as near as possible to those of the request. Always the same for the same request. */
  pair(request: PairRequest): Pair;
  /** A step and its slope at some points t. */
  stepCurve(step: Given<StepSetting>, points: Float64Array): StepCurve;
  stepDefaults(): StepDefaults;
  queryLoss(items: ScoredItems, loss: Given<QueryLossSetting>): QueryLoss;
  /** How far AP of all items can be below AP of the batches, if that is 1. */
  gapBounds(batches: readonly BatchItems[]): GapBounds;
}

interface ScienceModule extends Science {
  default(options: { module_or_path: string }): Promise<unknown>;
}

let loading: Promise<Science> | null = null;

/** Loads the module once. After a failure the next call tries again. */
export function loadScience(): Promise<Science> {
  loading ??= load().catch((error: unknown) => {
    loading = null;
    throw error;
  });
  return loading;
}

async function load(): Promise<Science> {
  const module = (await import(pageFile("akin-science.js"))) as ScienceModule;
  await module.default({ module_or_path: pageFile("akin-science_bg.wasm") });
  return module;
}
