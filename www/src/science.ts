// The science of the page, computed by akin-core as a small wasm module (crate akin-science) on the main thread.
// Bad input throws a `Failure`.

/** How an item's relevance follows from its shared level (`core/src/relevance.rs`). */
export type RelevanceSetting =
  | { kind: "hierarchical_ap"; alpha: number }
  | { kind: "weighted_ap"; weights: number[] }
  | { kind: "plain"; alpha: number };

export type TiePolicy = "stable" | "strict" | "optimistic" | "pessimistic";

export interface RankingInput {
  /** L, the number of levels. */
  depth: number;
  /** The shared level of each item, 0 … L, best first. */
  levels: number[];
  /** The tie group of each item, which never falls along the ranking; equal groups are tied. Missing: no ties. */
  ties?: number[];
}

export interface ScoreSettings {
  relevance: RelevanceSetting;
  ties: TiePolicy;
  /** Whether |Ω(L)| counts the query itself. */
  count_query: boolean;
}

/** One item's term of H-AP (HAPPIER, eq. 3). */
export interface ItemTerm {
  /** From 1. Under the tie policies it can differ from the place in the list. */
  rank: number;
  relevance: number;
  h_rank: number;
  /** H-rank / rank. */
  quotient: number;
  /** The quotient divided by Σ rel; 0 for an item of relevance 0. They add up to H-AP. */
  contribution: number;
}

export interface HCurvePoint {
  rank: number;
  h_recall: number;
  h_precision: number;
}

export interface CurvePoint {
  rank: number;
  recall: number;
  precision: number;
}

/** A score is null where the query has no positive to measure. Levels run coarse to fine. */
export interface Scores {
  ap: (number | null)[];
  h_ap: number | null;
  weighted_ap: number | null;
  ndcg: number | null;
  asi: number | null;
  /** In levels, 0 … L; smaller is better. All other scores are from 0 to 1. */
  mistake_severity: number | null;
  recall_at_1: (number | null)[];
  /** Σ rel over the ranked items. */
  relevance_sum: number;
  /** In the order of the list. */
  items: ItemTerm[];
  /** At the rank of every item with a relevance. The area under its steps is H-AP (under every tie policy but `strict`). */
  h_curve: HCurvePoint[];
  /** Plain precision and recall per level, at the rank of every positive. The area under the steps is the level's AP. */
  curves: CurvePoint[][];
}

export interface Swapped {
  level: number;
  relevance: number;
  /** Σ min(rel(x), rel(this item)) over the items x above both. */
  s: number;
}

/** The swap of the neighbours at ranks r and r + 1: ΔH-AP = (up − down + S_up − S_down) / (r (r + 1) Σ rel). */
export interface SwapTerm {
  /** r, the upper rank. */
  rank: number;
  /** The item that moves from r + 1 to r. */
  up: Swapped;
  /** The item that moves from r to r + 1. */
  down: Swapped;
  delta: number;
}

export interface Move {
  /** H-AP after the move minus H-AP before it; null where H-AP is undefined. */
  delta: number | null;
  /** The neighbour swaps that the move consists of, in order; they add up to `delta`. Null where items are tied, or without H-AP. */
  swaps: SwapTerm[] | null;
  /** The ranking after the move. The moved item joins a tie group when it lands inside one, and is otherwise not tied. */
  ranking: RankingInput;
  before: Scores;
  after: Scores;
}

/** `best_same_ap`, `worst_same_ap`: the ranks of the items of level L stay, so AP at level L stays, and H-AP is largest or smallest. */
export type OrderGoal = "ideal" | "best_same_ap" | "worst_same_ap";

export interface PairRequest {
  /** From 2 to 4. */
  depth: number;
  /** The number of items, from depth + 1 to 40. With eq. 4 HAPPIER's fig. 1 needs 19; 21 if finer levels shall be more relevant. */
  size: number;
  /** AP at level L of both rankings. */
  ap: number;
  /** H-AP of the first and of the second ranking, the greater one first. */
  h_ap: [number, number];
  relevance: RelevanceSetting;
}

// --- Steps and losses of one query (`core/src/steps`, `core/src/query_losses`) --------------------

/** H⁻. What is left out is core's default; `slope`, `threshold` and `offset` can be null. */
export interface UpperStepSettings {
  /** τ. */
  temperature?: number;
  /** ρ. Null: there is no line, only the sigmoid. */
  slope?: number | null;
  /** δ. */
  threshold?: number | null;
  /** The value at δ. Null: the step is continuous. */
  offset?: number | null;
  start?: number;
  start_at_zero?: boolean;
}

/** H⁺. HAPPIER calls `leak` γ, `slope` ν and `start` μ. What is left out is core's default. */
export interface LowerStepSettings {
  slope?: number;
  start?: number;
  leak?: number;
  start_at_zero?: boolean;
}

export type StepSetting =
  | { kind: "heaviside" }
  | { kind: "sigmoid"; temperature?: number }
  | ({ kind: "upper" } & UpperStepSettings)
  | ({ kind: "lower" } & LowerStepSettings);

export interface StepCurve {
  values: number[];
  derivatives: number[];
}

/** Items of one query, in any order. */
export interface ScoredItems {
  depth: number;
  scores: number[];
  /** The shared level of each item, 0 … L. */
  levels: number[];
}

export type QueryLossSetting =
  | { kind: "smooth_ap"; temperature?: number }
  | { kind: "sup_ap"; step?: UpperStepSettings }
  | { kind: "roadmap"; lambda?: number; sup_ap?: { step?: UpperStepSettings } }
  | {
      kind: "hap_surrogate";
      relevance?: RelevanceSetting;
      upper_step?: UpperStepSettings;
      lower_step?: LowerStepSettings;
      order?: "levels" | "relevances";
      smooth_rank?: boolean;
    };

/** The smooth ranks of an item that counts in the average of a loss. */
export interface Quotient {
  /** The item's place in the list that was given. */
  item: number;
  /** The smooth rank among the positives, or the smooth H-rank. */
  above: number;
  rank: number;
  weight: number;
}

export interface QueryLoss {
  value: number;
  /** ∂L/∂s of each item. A training step moves the score against it. */
  gradient: number[];
  quotients: Quotient[];
}

export interface Science {
  score(ranking: RankingInput, settings: ScoreSettings): Scores;
  /** Moves the item in place `from` of the list to place `to`, both counted from 0. */
  move(ranking: RankingInput, settings: ScoreSettings, from: number, to: number): Move;
  /** The best order for a goal: for each place, the place of its item in the given list. Tied items count in the order of the tie policy. */
  order(ranking: RankingInput, settings: ScoreSettings, goal: OrderGoal): number[];
  /** Two rankings of the same items, as shared levels, whose scores are as near as possible to those of the request. Always the same for the same request. */
  pair(request: PairRequest): { first: number[]; second: number[] };
  /** A step and its slope at some points t. */
  stepCurve(step: StepSetting, points: Float64Array): StepCurve;
  stepDefaults(): {
    upper: Required<UpperStepSettings>;
    lower: Required<LowerStepSettings>;
  };
  queryLoss(items: ScoredItems, loss: QueryLossSetting): QueryLoss;
}

interface ScienceModule extends Science {
  default(): Promise<unknown>;
}

/** The module lies beside the page, one folder above its scripts. */
const MODULE = new URL("../akin-science.js", import.meta.url).href;

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
  const module = (await import(MODULE)) as ScienceModule;
  await module.default();
  return module;
}
