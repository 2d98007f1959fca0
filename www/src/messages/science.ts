// What crosses between the page and a wasm module. Made from Rust types, see web/bridge/src/typescript.rs.

/**
 * The items of one batch as one query sees them. Calibration asks positives for scores of at least α, and negatives for
 * scores of at most β.
 */
export type BatchItems = {
/**
 * The positives with a score of at least α.
 */
good_positives: number,
/**
 * The positives with a lower score.
 */
bad_positives: number,
/**
 * The negatives with a score of at most β.
 */
good_negatives: number,
/**
 * The negatives with a higher score.
 */
bad_negatives: number, };

/**
 * Settings of the calibration.
 */
export type CalibrationConfig = {
/**
 * α: positives should score at least this. Default 0.9.
 */
positive: number,
/**
 * β ≤ α: negatives should score at most this. Default 0.6.
 */
negative: number,
/**
 * The pairs that a mean is taken over. Default: the pairs of each query, then the queries.
 */
mean: PairMean,
/**
 * Whether to scale embeddings to unit length first, as the published code does. The heads of akin already do.
 * Default false.
 */
normalise_embeddings: boolean, };

/**
 * A point of the curve whose area is the AP of a level.
 */
export type CurvePoint = {
/**
 * The rank of a positive.
 */
rank: number,
/**
 * Recall.
 */
recall: number,
/**
 * Precision.
 */
precision: number, };

/**
 * How far AP of all items can be below AP of the batches, if that is 1; null without a positive.
 */
export type GapBounds = {
/**
 * Whatever the scores.
 */
any_scores: number | null,
/**
 * For scores that keep to calibration as far as the counts say.
 */
calibrated: number | null, };

/**
 * What an [`order`] is best at.
 */
export type Goal = "ideal" | "best_same_ap" | "worst_same_ap";

/**
 * A point of the curve whose area is H-AP.
 */
export type HCurvePoint = {
/**
 * The rank of an item with a relevance.
 */
rank: number,
/**
 * H-recall.
 */
h_recall: number,
/**
 * H-precision.
 */
h_precision: number, };

/**
 * Settings of the H-AP surrogate. The defaults are those of the published code; the preset `hap_surrogate_text` has those
 * of the paper's text.
 */
export type HapSurrogateConfig = {
/**
 * The relevance of an item by its shared level, with class sizes counted over the batch. Default: HAPPIER, eq. 4
 * with α = 1. HAPPIER_F has a larger α (3 to 5).
 */
relevance: Relevance,
/**
 * H⁻, for items that belong below. Default: that of [`UpperStep`], with the offset 1.44.
 */
upper_step: UpperStep,
/**
 * H⁺, for items that belong above; used with `smooth_rank`.
 */
lower_step: LowerStep,
/**
 * What says which items belong above another. Default: their levels.
 */
order: ItemOrder,
/**
 * Whether the H-rank is smooth and has a gradient. A smooth H-rank can be negative; the loss then pushes the item
 * further down the ranking. Default false.
 */
smooth_rank: boolean,
/**
 * Whether the ranked items have no gradient, so that only queries move. Default false.
 */
stop_gradient: boolean, };

/**
 * What says which items belong above another.
 */
export type ItemOrder = "levels" | "relevances";

/**
 * One item's term of H-AP (HAPPIER, eq. 3).
 */
export type ItemTerm = {
/**
 * From 1. Under the tie policies it can differ from the place in the list.
 */
rank: number,
/**
 * rel.
 */
relevance: number,
/**
 * H-rank.
 */
h_rank: number,
/**
 * H-rank / rank.
 */
quotient: number,
/**
 * The quotient divided by Σ rel; 0 for an item of relevance 0. They add up to H-AP.
 */
contribution: number, };

/**
 * H⁺(t), a lower bound of the step (HAPPIER, eq. 43):
 *
 * ```text
 * leak·t             t ≤ 0
 * min(β·t + γ, 1)    t > 0
 * ```
 *
 * The paper calls the slopes γ and ν and the start μ. Its eq. 43 has max in place of min, which is a misprint: that
 * step would be at least 1 above 0 and grow without limit, while the next sentence of the paper says that it is at
 * most H. Eq. 43 also puts t = 0 into the second line, which gives γ for an exact tie. Here, as in the published code,
 * it is in the first line and gives 0, unless `start_at_zero` is set, as `happier_text` does. Both are lower bounds of
 * H(0) = 1.
 */
export type LowerStep = {
/**
 * β ≥ 0, the slope above 0. Default 25.
 */
slope: number,
/**
 * γ, the value just above 0, in 0 … 1. Default 0.5.
 */
start: number,
/**
 * The slope below 0, at least 0. Default 10.
 */
leak: number,
/**
 * Whether the value at exactly t = 0 is `start`, as in eq. 43, instead of 0. Default false.
 */
start_at_zero: boolean, };

/**
 * What a move changes.
 */
export type Move = {
/**
 * H-AP after the move minus H-AP before it; null where H-AP is undefined.
 */
delta: number | null,
/**
 * The neighbour swaps that the move consists of, in order; they add up to `delta`. null where items are tied, or
 * without H-AP.
 */
swaps: Array<SwapTerm> | null,
/**
 * The ranking after the move. The moved item joins a tie group when it lands inside one, and is otherwise not tied.
 */
ranking: RankingInput,
/**
 * The scores before the move.
 */
before: Scores,
/**
 * The scores after it.
 */
after: Scores, };

/**
 * Two rankings of the same items, as shared levels.
 */
export type Pair = {
/**
 * The one with the greater H-AP.
 */
first: Array<number>,
/**
 * The other.
 */
second: Array<number>, };

/**
 * The pairs that a mean is taken over, separately for positives and negatives.
 */
export type PairMean = "queries" | "queries_with_self" | "active";

/**
 * What a pair of rankings must have.
 */
export type PairRequest = {
/**
 * From 2 to 4.
 */
depth: number,
/**
 * The number of items, from depth + 1 to 40. With eq. 4 HAPPIER's fig. 1 needs 19; 21 if finer levels shall be more
 * relevant.
 */
size: number,
/**
 * AP at level L of both rankings.
 */
ap: number,
/**
 * H-AP of the first and of the second ranking, the greater one first.
 */
h_ap: [number, number],
/**
 * What an item's relevance follows from.
 */
relevance: Relevance, };

/**
 * A loss with its gradient.
 */
export type QueryLoss = {
/**
 * The loss.
 */
value: number,
/**
 * ∂L/∂s of each item. A training step moves the score against it.
 */
gradient: Array<number>,
/**
 * Those of the items that count in the average of the loss.
 */
quotients: Array<Quotient>, };

/**
 * A ranking loss of one query.
 */
export type QueryLossSetting = { "kind": "smooth_ap" } & SmoothApConfig | { "kind": "sup_ap" } & SupApConfig | { "kind": "roadmap" } & RoadmapConfig | { "kind": "hap_surrogate" } & HapSurrogateConfig;

/**
 * The smooth ranks of an item that counts in the average of a loss.
 */
export type Quotient = {
/**
 * The item's place in the list that was given.
 */
item: number,
/**
 * The smooth rank among the positives, or the smooth H-rank.
 */
above: number,
/**
 * The smooth rank.
 */
rank: number,
/**
 * The weight of the quotient in the average.
 */
weight: number, };

/**
 * A ranking.
 */
export type RankingInput = {
/**
 * L, the number of levels.
 */
depth: number,
/**
 * The shared level of each item, 0 … L, best first.
 */
levels: Array<number>,
/**
 * The tie group of each item, which never falls along the ranking; equal groups are tied. Without them there are no
 * ties.
 */
ties?: Array<number>, };

/**
 * How relevance is computed from the shared level l (1 … L) and the sizes |Ω(l)|, as a config names it. A stranger's
 * relevance is always 0.
 *
 * This is the config form; [`checked`](Self::checked) turns it into the form that metrics and losses compute with.
 *
 * With [`HierarchicalAp`](Self::HierarchicalAp) an item of a rare coarse level can be more relevant than one of a
 * finer level. The ideal order, by decreasing relevance, is then not the order by level.
 */
export type Relevance = { "kind": "hierarchical_ap",
/**
 * α ≥ 0: how strongly finer levels are preferred. Default 1.
 */
alpha: number, } | { "kind": "weighted_ap",
/**
 * w_1 … w_L, coarse → fine, each ≥ 0, not all 0.
 */
weights: Array<number>, } | { "kind": "plain",
/**
 * α ≥ 0: how strongly finer levels are preferred. Default 1.
 */
alpha: number, };

/**
 * Settings of ROADMAP. The preset `roadmap_published` has those of the published code, which adds the two losses.
 */
export type RoadmapConfig = {
/**
 * λ in 0 … 1, the weight of the calibration. Default 0.5.
 */
lambda: number,
/**
 * The bound of 1 − AP.
 */
sup_ap: SupApConfig,
/**
 * The calibration of scores.
 */
calibration: CalibrationConfig, };

/**
 * How a ranking is scored.
 */
export type ScoreSettings = {
/**
 * What an item's relevance follows from.
 */
relevance: Relevance,
/**
 * How ties are ranked.
 */
ties: TiePolicy,
/**
 * Whether |Ω(L)| counts the query itself.
 */
count_query: boolean, };

/**
 * Items of one query, in any order.
 */
export type ScoredItems = {
/**
 * L, the number of levels.
 */
depth: number,
/**
 * The score of each item.
 */
scores: Array<number>,
/**
 * The shared level of each item, 0 … L.
 */
levels: Array<number>, };

/**
 * The scores of a ranking.
 */
export type Scores = {
/**
 * AP at each level.
 */
ap: Array<number | null>,
/**
 * H-AP.
 */
h_ap: number | null,
/**
 * The weighted mean of AP over the levels.
 */
weighted_ap: number | null,
/**
 * NDCG.
 */
ndcg: number | null,
/**
 * ASI.
 */
asi: number | null,
/**
 * In levels, 0 … L; smaller is better. All other scores are from 0 to 1.
 */
mistake_severity: number | null,
/**
 * R@1 at each level.
 */
recall_at_1: Array<number | null>,
/**
 * Σ rel over the ranked items.
 */
relevance_sum: number,
/**
 * In the order of the list.
 */
items: Array<ItemTerm>,
/**
 * At the rank of every item with a relevance. The area under its steps is H-AP (under every tie policy but
 * `strict`).
 */
h_curve: Array<HCurvePoint>,
/**
 * Plain precision and recall per level, at the rank of every positive. The area under the steps is the level's AP.
 */
curves: Array<Array<CurvePoint>>, };

/**
 * Settings of Smooth-AP.
 */
export type SmoothApConfig = {
/**
 * τ > 0, the width of the sigmoid. Default 0.01.
 */
temperature: number, };

/**
 * A step at some points.
 */
export type StepCurve = {
/**
 * Its values.
 */
values: Array<number>,
/**
 * Its slopes.
 */
derivatives: Array<number>, };

/**
 * The default settings of the two steps.
 */
export type StepDefaults = {
/**
 * Those of H⁻.
 */
upper: UpperStep,
/**
 * Those of H⁺.
 */
lower: LowerStep, };

/**
 * A step.
 */
export type StepSetting = { "kind": "heaviside", } | { "kind": "sigmoid" } & SmoothApConfig | { "kind": "upper" } & UpperStep | { "kind": "lower" } & LowerStep;

/**
 * Settings of SupAP. The preset `sup_ap_published` has the offset 1.44 of the published code.
 */
export type SupApConfig = {
/**
 * H⁻, the step for negatives. It is continuous by default.
 */
step: UpperStep, };

/**
 * The swap of the neighbours at ranks r and r + 1: ΔH-AP = (up − down + S_up − S_down) / (r (r + 1) Σ rel).
 */
export type SwapTerm = {
/**
 * r, the upper rank.
 */
rank: number,
/**
 * The item that moves from r + 1 to r.
 */
up: Swapped,
/**
 * The item that moves from r to r + 1.
 */
down: Swapped,
/**
 * ΔH-AP.
 */
delta: number, };

/**
 * One of the two items of a swap.
 */
export type Swapped = {
/**
 * Its shared level.
 */
level: number,
/**
 * rel.
 */
relevance: number,
/**
 * Σ min(rel(x), rel(this item)) over the items x above both.
 */
s: number, };

/**
 * How items with exactly equal scores are ranked.
 *
 * For every metric except [H-P@k](crate::metrics::h_precision), the values under [`Pessimistic`](Self::Pessimistic)
 * and [`Optimistic`](Self::Optimistic) bound the value under any other order of the ties. [`Strict`](Self::Strict) and
 * [`Shared`](Self::Shared) are not orders.
 */
export type TiePolicy = "stable" | "strict" | "optimistic" | "pessimistic" | "shared";

/**
 * H⁻(t), an upper bound of the step (ROADMAP, eq. 4; HAPPIER, eq. 44, for the rank of negatives):
 *
 * ```text
 * σ(t/τ)                  t ≤ 0
 * σ(t/τ) + start          0 < t ≤ δ
 * ρ·(t − δ) + offset      t > δ
 * ```
 *
 * Without an `offset` it is continuous at δ, as in the papers: offset = σ(δ/τ) + start. The published code uses 1.44,
 * which leaves a small jump. Without a `threshold` the line starts at 0. Without a `slope` there is no line, only the
 * sigmoid of Smooth-AP.
 *
 * It is an upper bound if it has a slope, a `start` of at least ½ and an `offset` of at least 1, with one exception.
 * Both papers put t = 0 into the first line and into the second. Here it is in the first, as in the published code:
 * the value is ½, while H(0) is 1. With `start_at_zero` it is in the second, and the bound holds at exact ties too.
 */
export type UpperStep = {
/**
 * τ > 0, the width of the sigmoid. Default 0.01.
 */
temperature: number,
/**
 * ρ ≥ 0, the slope beyond the threshold. Default 100.
 */
slope: number | null,
/**
 * δ ≥ 0, where the line takes over. Default 0.05.
 */
threshold: number | null,
/**
 * The value at δ, at least 0. Default none, which makes the step continuous.
 */
offset: number | null,
/**
 * Added to the sigmoid above 0, at least 0. Default 0.5, which makes the value at least 1 there.
 */
start: number,
/**
 * Whether `start` is also added at exactly t = 0. Default false.
 */
start_at_zero: boolean, };
