// What crosses between the page and a wasm module. Made from Rust types, see web/bridge/src/typescript.rs.

/**
 * The graphics adapter that the engine computes with.
 */
export type Adapter = {
/**
 * What the browser tells of it, such as `nvidia ampere`; empty where it tells nothing.
 */
name: string,
/**
 * Whether the processor does the work of the adapter.
 */
software: boolean,
/**
 * The largest buffer in bytes.
 */
largest_buffer: number,
/**
 * Whether shaders have numbers of 16 bits.
 */
half_precision: boolean, };

/**
 * The mean score of every pair of classes at one level.
 */
export type Affinity = {
/**
 * The level, 1 … L.
 */
level: number,
/**
 * C classes of the level, each with an item in the gallery; classes of one parent stand together.
 */
classes: Array<number>,
/**
 * The path of the scores, \[C, C\]: the mean over the pairs of two different gallery items, one of either class.
 * A class of one item has the score of that item to itself.
 */
scores: string, };

/**
 * The answer to one query.
 */
export type Answer = {
/**
 * The most likely classes, coarse to fine: a path of the taxonomy.
 */
levels: Array<Certain>,
/**
 * The deepest level that may be said at the promise; 0 where none may.
 */
reached: number,
/**
 * Whether nothing in the gallery is like the query. Nothing is said then.
 */
unlike: boolean,
/**
 * Whether the gallery is large and easy enough to say anything at this promise.
 */
possible: boolean, };

/**
 * The answer at one promise.
 */
export type Answered = {
/**
 * The least share of right answers.
 */
promise: number,
/**
 * What may be said.
 */
answer: Answer,
/**
 * The first class that is probable only; null if every level may be said, or nothing is like the query.
 */
probable: Certain | null,
/**
 * For each level, how many of the voters are of the class.
 */
speakers: Array<number>,
/**
 * The number of items that vote.
 */
voters: number, };

/**
 * The distribution of the best scores of a gallery's own items, so that a page can say how unusual the best score
 * of a query is.
 *
 * The best score of a gallery item is its score to the most similar *other* gallery item, by the similarity that the
 * encoder's embeddings are ranked by.
 */
export type BestScores = {
/**
 * The 0th, 1st, … 100th percentile: 101 numbers, ascending. Of N sorted scores, percentile p is the one at
 * position ⌊p (N − 1) / 100⌋, counted from 0: the first number is the lowest score, the last the highest.
 */
quantiles: Array<number>, };

/**
 * What the gallery's own answers say about certainties and thresholds. A few numbers per level, which travel with a
 * bundle.
 */
export type Calibration = {
/**
 * The number of gallery items that were asked.
 */
items: number,
/**
 * For each level, coarse to fine, how the share of votes becomes a certainty.
 */
levels: Array<Steps>,
/**
 * What each threshold gives, from the highest certainty to the lowest.
 */
thresholds: Array<Threshold>, };

/**
 * The most likely class at one level.
 */
export type Certain = {
/**
 * 1 … L.
 */
level: number,
/**
 * The class id at this level.
 */
class: number,
/**
 * The probability that this is the class of the query, in [0, 1]. It never rises from one level to the next.
 */
certainty: number, };

/**
 * The codes of the query and of the results, in their order: texts of `0` and `1`.
 */
export type CodeTexts = {
/**
 * That of the query.
 */
query: string,
/**
 * Those of the results.
 */
results: Array<string>, };

/**
 * What a bundle says, without the checksums of its files.
 */
export type Contents = {
/**
 * A short name for people.
 */
title: string,
/**
 * What the bundle holds, in a sentence or two.
 */
description: string,
/**
 * The licence of images and weights, as an SPDX expression where there is one.
 */
licence: string,
/**
 * What the models are, what they were trained on and what they cannot do: Markdown.
 */
model_card: string,
/**
 * The label tree.
 */
taxonomy: Taxonomy,
/**
 * The items that are ranked; at least one.
 */
gallery: Items,
/**
 * Stored queries. Without any, every gallery item can be the query; it never ranks itself.
 */
queries: Items,
/**
 * The path of the labels.
 */
labels: string,
/**
 * What the items share beyond one label path each; null in a tree.
 */
kinship?: ItemKinship | null,
/**
 * The small pictures of all items.
 */
thumbnails: Thumbnails,
/**
 * The paths of small pictures, PNG or JPEG, that every encoder embeds to show that a reader computes what the
 * trainer did. Empty if and only if no encoder has weights.
 */
parity_pictures?: Array<string>,
/**
 * The encoders over this gallery; at least one, each with a name of its own.
 */
encoders: Array<EncoderEntry>, };

/**
 * The embedding of an image.
 */
export type Embedded = {
/**
 * d numbers.
 */
embedding: Array<number>,
/**
 * The time of decoding in milliseconds.
 */
decode_ms: number,
/**
 * The time of the network in milliseconds.
 */
embed_ms: number, };

/**
 * One encoder of a bundle, with its embeddings of the items and its results.
 */
export type EncoderEntry = {
/**
 * A short name for people, unique in the bundle.
 */
name: string,
/**
 * What sets it apart, in a sentence.
 */
description: string,
/**
 * The name of a family of hash encoders that differ in the number of bits only; a page offers them as one encoder
 * with a choice of bits. null for an encoder that stands alone.
 */
family?: string | null,
/**
 * d, the dimension of an embedding.
 */
dimension: number,
/**
 * The path of the weights. null if only the embeddings of the items are known: these can be searched and shown, but
 * no other picture can be embedded.
 */
weights?: string | null,
/**
 * The path of the gallery's embeddings.
 */
gallery_embeddings: string,
/**
 * The path of the stored queries' embeddings; null if and only if there are no stored queries.
 */
query_embeddings: string | null,
/**
 * What the trainer makes of `parity_pictures`. null if and only if there are no weights.
 */
parity?: Parity | null,
/**
 * The network before the head, if it is an ONNX file.
 */
onnx?: OnnxEntry | null,
/**
 * The licence of its weights, if it is not that of the bundle: an SPDX expression where there is one.
 */
licence?: string | null,
/**
 * The evaluation of the encoder on this gallery, without its rows per query.
 */
report: Report,
/**
 * 2-D maps of the gallery; may be empty.
 */
maps?: Array<GalleryMap>,
/**
 * How alike the gallery's own nearest items are. null where it was not measured.
 */
best_scores?: BestScores | null,
/**
 * How far the answers of this gallery can be trusted. null where it was not measured.
 */
calibration?: Calibration | null,
/**
 * How alike the classes of the gallery are; at most one per level, and none where there are too many classes.
 */
affinities?: Array<Affinity>,
/**
 * The scores of each query. null where they were not stored.
 */
query_scores?: QueryTable | null, };

/**
 * Which metrics are measured, and how.
 */
export type EvaluationConfig = {
/**
 * The metrics to report, in the order of tables. Default: `h_ap`, `ndcg`, `asi`, and per level `ap`, `map_at_r`
 * and `recall@1`.
 */
metrics: Array<Metric>,
/**
 * The relevance of H-AP. Default: HAPPIER's eq. 4 with α = 1.
 */
relevance: Relevance,
/**
 * How equal scores are ranked. Default: in gallery order.
 */
ties: TiePolicy,
/**
 * Whether |Ω(L)| counts the query itself, as in published numbers. Default: false.
 */
count_query: boolean,
/**
 * The similarity that items are ranked by. Default: cosine.
 */
similarity: Similarity,
/**
 * The most queries that a thread scores at once with a block of the gallery. No result depends on it. Default: 64.
 */
block: number, };

/**
 * A file of a bundle and its checksum.
 */
export type FileEntry = {
/**
 * The path, relative to the bundle: names of ASCII letters, digits, `-`, `_` and `.`, joined by `/`.
 */
path: string,
/**
 * The length in bytes.
 */
bytes: number,
/**
 * The SHA-256 of its bytes, in lower-case hexadecimal.
 */
sha256: string, };

/**
 * A 2-D map of the gallery: one point per gallery item, near where the embeddings are near.
 */
export type GalleryMap = {
/**
 * A short name for people, such as the method.
 */
name: string,
/**
 * How the map was made and how to read it, in a sentence.
 */
description: string,
/**
 * The path of the coordinates, \[N, 2\]: x to the right, y upwards, in any unit, the same for both.
 */
coordinates: string,
/**
 * The space that the points are in.
 */
geometry?: MapGeometry,
/**
 * Learned ancestors of the items, in the same space.
 */
proxies?: MapProxies | null,
/**
 * The means of classes in place of the items, as a map of their own.
 */
class_means?: MapMeans | null, };

/**
 * The type of the numbers of a network's input.
 */
export type InputType = "f32" | "f16" | "u8";

/**
 * What weights of 8 bits cost: the means of H-AP over the queries, measured at export.
 */
export type Int8Loss = {
/**
 * With the weights of the file that was given, which the gallery is embedded with.
 */
h_ap: number,
/**
 * With the weights of the bundle, for queries and gallery.
 */
h_ap_int8: number, };

/**
 * The kinship of the items of a bundle.
 */
export type ItemKinship = {
/**
 * The kind of each item, gallery first.
 */
kinds: Array<number>,
/**
 * The label paths of each kind, as class ids, or the relevance of each pair of kinds.
 */
kinship: { paths: number[][][] } | { matrix: number[][] }, };

/**
 * A set of items.
 */
export type Items = {
/**
 * The number of items.
 */
count: number, };

/**
 * The order of the axes of a network's input.
 */
export type Layout = "channels_first" | "channels_last";

/**
 * The means at one level.
 */
export type LevelReport = {
/**
 * The level's name.
 */
name: string,
/**
 * The number of queries with a positive at this level or, for metrics over all levels, at any level, and with a known
 * label there.
 */
queries: number, } & ({ [key in string]: number | null });

/**
 * How alike a picture and its nearest item are, beside the gallery's own items and theirs.
 */
export type Likeness = {
/**
 * The score of the nearest item.
 */
best: number,
/**
 * 99 % of the gallery's own items have a best score of at least this.
 */
unlike_below: number,
/**
 * Whether the picture is unlike everything in the gallery.
 */
unlike: boolean, };

/**
 * Where two pictures carry their score.
 */
export type Look = {
/**
 * The score of the two pictures.
 */
score: number,
/**
 * Whether the score is a sum over cells. Otherwise `occlude` gives the values of the patches.
 */
exact: boolean,
/**
 * The picture that was asked with.
 */
query: LookSide,
/**
 * The picture that was found.
 */
item: LookSide,
/**
 * The part of each pair of cells, [query's cells, item's cells]; null where the score is no sum.
 */
pairs: Array<number> | null, };

/**
 * One of the two pictures, as a grid of cells.
 */
export type LookSide = {
/**
 * The number of rows.
 */
rows: number,
/**
 * The number of columns.
 */
columns: number,
/**
 * What the encoder sees, as shares of the picture: left, top, width, height.
 */
region: [number, number, number, number],
/**
 * What each cell adds to the score, row by row; null where the score is no sum.
 */
values: Array<number> | null,
/**
 * The embedding of the picture.
 */
embedding: Array<number>, };

/**
 * The space of a map.
 */
export type MapGeometry = "plane" | "poincare_disk";

/**
 * A map of the mean embeddings of the finest classes, made by the method of the map that it belongs to (as HAPPIER's
 * figure 5 is).
 */
export type MapMeans = {
/**
 * How the map was made and how to read it, in a sentence.
 */
description: string,
/**
 * The C finest classes with an item in the gallery; classes of one parent stand together.
 */
classes: Array<number>,
/**
 * The path of the coordinates of their means, \[C, 2\], in the space of the map that it belongs to.
 */
coordinates: string, };

/**
 * The proxies of an encoder that was trained with HIER, on a map of its gallery; see [`ancestors`](crate::ancestors).
 */
export type MapProxies = {
/**
 * P, the number of proxies, at least 1.
 */
count: number,
/**
 * The path of their coordinates, \[P, 2\].
 */
coordinates: string,
/**
 * M, the number of nearest items of each proxy.
 */
per_proxy: number,
/**
 * The path of the gallery items nearest to each proxy, \[P, M\], nearest first.
 */
nearest: string,
/**
 * The path of the ancestor of each gallery item at each level, \[N, L\], coarse to fine; [`NO_ANCESTOR`] for none.
 */
ancestors: string, };

/**
 * The part of the map that a frame shows.
 */
export type MapView = {
/**
 * The width of the canvas in device pixels.
 */
width: number,
/**
 * The height of the canvas in device pixels.
 */
height: number,
/**
 * Device pixels per CSS pixel.
 */
ratio: number,
/**
 * Device pixels per unit of the plane, or the radius of the disk.
 */
scale: number,
/**
 * The point in the middle.
 */
centre: [number, number],
/**
 * Whether the map is the Poincaré disk.
 */
is_disk: boolean,
/**
 * The radius of a mark in device pixels.
 */
radius: number,
/**
 * The colour of the paper, each part from 0 to 1.
 */
paper: [number, number, number], };

/**
 * The mean of each metric over queries.
 */
export type Means = {
/**
 * The number of queries with a positive at this level or, for metrics over all levels, at any level, and with a known
 * label there.
 */
queries: number, } & ({ [key in string]: number | null });

/**
 * A metric with its cut-off k, as configs, reports and the command line write it: `h_ap`, `ndcg@10`, `recall@1`.
 *
 * It has either one value over all levels or one value per level; its [`MetricEntry`] says which. k is at least 1.
 * Metrics are ordered as in the [`CATALOGUE`].
 *
 * ```
 * use akin_core::metrics::Metric;
 *
 * let metric: Metric = "recall@10".parse()?;
 * assert_eq!((metric.to_string(), metric.label()), ("recall@10".into(), "R@10".into()));
 * assert!(metric.entry().per_level);
 * assert!("recal@10".parse::<Metric>().unwrap_err().hint().contains("recall@k"));
 * # akin_core::Result::Ok(())
 * ```
 */
export type Metric = string;

/**
 * What core's catalogue says about a metric.
 */
export type MetricInfo = {
/**
 * The name in a config: `recall@1`.
 */
name: string,
/**
 * The name in a table: `R@1`.
 */
label: string,
/**
 * The name in the literature.
 */
title: string,
/**
 * The unit of its values.
 */
unit: Unit,
/**
 * Whether a greater value is better.
 */
greater_is_better: boolean,
/**
 * Whether it has a value per level, or one over all levels.
 */
per_level: boolean, };

/**
 * The metrics of the whole ranking, not only of the results, by name as in a report. A metric is null where the query
 * has no positives.
 */
export type Metrics = {
/**
 * The metrics that the bundle asks for, in its order.
 */
described: Array<MetricInfo>,
/**
 * Those over all levels.
 */
overall: { [key in string]: number | null },
/**
 * Those per level, coarse to fine.
 */
levels: Array<{ [key in string]: number | null }>, };

/**
 * The network of an encoder in an ONNX file, and how it is called. `architecture.backbone` says what core needs of it:
 * the number of features and of prefix tokens.
 */
export type OnnxEntry = {
/**
 * The path of the file, all of whose weights are inside.
 */
file: string,
/**
 * The name of its input. It takes one image, of the side that the preprocessing crops to.
 */
input: string,
/**
 * The order of the axes of its input.
 */
layout: Layout,
/**
 * The type of the numbers of its input.
 */
element_type: InputType,
/**
 * The name of the output to use: \[1, F\], \[1, T, F\] or \[1, F, H, W\].
 */
output: string,
/**
 * What storing the weights in 8 bits costs. null if the file is as it was given.
 */
int8?: Int8Loss | null, };

/**
 * The taxonomy of the reader's own pictures as in `bundle.json`, and their labels.
 */
export type OwnLabels = {
/**
 * The names of the classes, one list per level, coarse to fine.
 */
classes: Array<Array<string>>,
/**
 * The parent of each class, one level coarser; empty at the first level.
 */
parents: Array<Array<number>>,
/**
 * Class ids, picture by picture, coarse to fine.
 */
labels: Array<number>, };

/**
 * The trainer's embeddings of the parity pictures: whoever embeds these pictures can tell whether an engine computes what
 * the trainer did.
 */
export type Parity = {
/**
 * The path of the embeddings, f32, \[P, d\] for P pictures, with the weights that the gallery was embedded with.
 */
embeddings: string,
/**
 * The smallest cosine of a picture's embedding to the one that the trainer gets with the stored weights: 1 if these
 * are the same, less in half precision or 8 bits.
 */
cosine: number, };

/**
 * How far the embeddings of the parity pictures agree with the trainer's.
 */
export type ParityCheck = {
/**
 * The number of pictures.
 */
pictures: number,
/**
 * The smallest cosine of a picture's two embeddings.
 */
cosine: number,
/**
 * The smallest that is good enough.
 */
bound: number,
/**
 * Whether it is.
 */
passed: boolean, };

/**
 * A column of a [`QueryTable`].
 */
export type QueryColumn = {
/**
 * A metric by its name in the catalogue, or `first_shared_level`: the shared level of the first result, 0 … L.
 */
metric: string,
/**
 * The level of a metric per level, 1 … L; 0 for the others.
 */
level: number, };

/**
 * The scores of each stored query or, without any, of each gallery item as the query.
 */
export type QueryTable = {
/**
 * What the K columns hold.
 */
columns: Array<QueryColumn>,
/**
 * The path of the scores, \[Q or N, K\]. −1 stands for no score: the query has no positive at that level.
 */
scores: string, };

/**
 * The answer to one query.
 */
export type Ranked = {
/**
 * null where the query's labels are unknown.
 */
metrics: Metrics | null,
/**
 * null where the encoder has no codes.
 */
codes: CodeTexts | null,
/**
 * The best items.
 */
results: Array<Result>,
/**
 * null where the query's labels are known, or the gallery has no labels.
 */
votes: Array<Vote> | null,
/**
 * How far the votes hold, at each promise that is offered. null where there are no votes, or where the gallery has no
 * calibration.
 */
answers: Array<Answered> | null,
/**
 * null where the best scores of the gallery are unknown.
 */
likeness: Likeness | null, };

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
 * Means over queries. A query without positives at a level is left out of that level's means. Each mean has the number
 * of its queries, and is null when there are none.
 */
export type Report = {
/**
 * The settings of the evaluation.
 */
config: EvaluationConfig,
/**
 * The number of queries.
 */
queries: number,
/**
 * The number of items that each query ranks.
 */
ranked: number,
/**
 * Over all levels.
 */
overall: Means,
/**
 * At levels 1 … L.
 */
levels: Array<LevelReport>, };

/**
 * A result.
 */
export type Result = {
/**
 * Its place in the gallery, from 0.
 */
item: number,
/**
 * Its similarity to the query.
 */
score: number,
/**
 * null where the labels of the query or of the item are unknown. Where only some of them are, they may share more.
 */
shared_level: number | null,
/**
 * The finest level that they may share. null where the labels of the query or of the item are unknown.
 */
may_share: number | null, };

/**
 * The score that items are ranked by. A larger score is nearer.
 *
 * In a config it is a name, `"cosine"`, or a table if it has a setting, `{ poincare = { curvature = 0.1 } }`.
 */
export type Similarity = "cosine" | "euclidean" | "dot" | { "poincare": {
/**
 * c of the ball that the embeddings were trained in; a finite number above 0.
 */
curvature: number, } } | "hamming";

/**
 * A step function from the share of votes at one level to the certainty.
 */
export type Steps = {
/**
 * Where each step begins, ascending. A share below the first belongs to the first step.
 */
shares: Array<number>,
/**
 * The certainty of each step, ascending: (right + 1) / (answers + 2), Laplace's rule of succession.
 */
certainties: Array<number>, };

/**
 * A tree of classes with L levels.
 *
 * Classes of a level are numbered from 0 in the order in which they first appear.
 *
 * ```
 * use akin_core::taxonomy::{ClassIdentity, Taxonomy, shared_level};
 *
 * let levels = ["kind", "variety"].map(String::from);
 * let rows = [vec!["apple", "gala"], vec!["apple", "fuji"], vec!["pear", "kaiser"]];
 * let (taxonomy, labels) = Taxonomy::from_rows(&levels, &rows, ClassIdentity::Name)?;
 *
 * assert_eq!(taxonomy.class_name(2, 1), "fuji");
 * assert_eq!(taxonomy.parent(2, 1), Some(0));
 * assert_eq!(shared_level(labels.row(0), labels.row(1)), 1);
 * # Ok::<(), akin_core::Error>(())
 * ```
 */
export type Taxonomy = { levels: Array<string>, classes: Array<Array<string>>, parents: Array<Array<number>>, };

/**
 * The answers of the gallery's items if the certainty must reach a threshold.
 */
export type Threshold = {
/**
 * The threshold.
 */
certainty: number,
/**
 * The items whose answer says at least the coarsest level.
 */
answered: number,
/**
 * Those of them whose answer is wrong.
 */
wrong: number, };

/**
 * Thumbnails on sheets: square tiles in rows, gallery items first, then stored queries.
 */
export type Thumbnails = {
/**
 * The side of a tile in pixels.
 */
tile: number,
/**
 * The number of tiles in a row.
 */
columns: number,
/**
 * The number of rows of a full sheet.
 */
rows: number,
/**
 * The paths of the sheets; all but the last are full.
 */
sheets: Array<string>, };

/**
 * How items with exactly equal scores are ranked.
 *
 * For every metric except [H-P@k](crate::metrics::h_precision), the values under [`Pessimistic`](Self::Pessimistic)
 * and [`Optimistic`](Self::Optimistic) bound the value under any other order of the ties. [`Strict`](Self::Strict) and
 * [`Shared`](Self::Shared) are not orders.
 */
export type TiePolicy = "stable" | "strict" | "optimistic" | "pessimistic" | "shared";

/**
 * The unit of a metric's values.
 */
export type Unit = "share" | "levels";

/**
 * The class that has most votes at one level.
 */
export type Vote = {
/**
 * 1 … L.
 */
level: number,
/**
 * The class id at this level.
 */
class: number,
/**
 * Its share of the weight of all neighbours whose label is known at this level. In (0, 1]; if all labels are known, it
 * never rises from one level to the next.
 */
share: number, };
