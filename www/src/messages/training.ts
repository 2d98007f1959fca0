// What crosses between the page and a wasm module. Made from Rust types, see web/bridge/src/typescript.rs.

/**
 * Names and labels of the creatures. Levels run coarse to fine.
 */
export type Description = {
/**
 * The names of the levels.
 */
levels: Array<string>,
/**
 * The names of the classes at each level.
 */
classes: Array<Array<string>>,
/**
 * [N, L], row after row.
 */
labels: Array<number>,
/**
 * Whether the species of a creature is held out.
 */
held_out: Array<boolean>,
/**
 * The number of measurements of each creature.
 */
features: number, };

/**
 * The families of losses, in the order of the lists.
 */
export type Family = "average_precision" | "decomposability" | "pairs" | "proxies" | "hierarchical" | "hyperbolic" | "hashing" | "combinations";

/**
 * Vectors that a loss has learned, as points of the space.
 */
export type Group = {
/**
 * Whether they are HIER's ancestors, which stand for no class.
 */
ancestors: boolean,
/**
 * [n, d], row after row.
 */
points: Array<number>, };

export type JsonValue = number | string | boolean | Array<JsonValue> | { [key in string]: JsonValue } | null;

/**
 * The scores of a run at one step.
 */
export type Measures = {
/**
 * The number of steps taken.
 */
step: number,
/**
 * The creatures that the network learns from.
 */
training: Scores,
/**
 * Those of the held-out species.
 */
held_out: Scores, };

/**
 * A loss of the catalogue with its settings.
 */
export type Offer = {
/**
 * Its name in the catalogue.
 */
name: string,
/**
 * Its name in tables.
 */
title: string,
/**
 * Its family.
 */
family: Family,
/**
 * What it does, in one sentence.
 */
summary: string,
/**
 * Its settings, as the table of a config.
 */
settings: { [key in string]: JsonValue }, };

/**
 * The scores of creatures that rank one another.
 */
export type Scores = {
/**
 * H-AP.
 */
h_ap: number | null,
/**
 * AP at levels 1 … L.
 */
ap: Array<number | null>,
/**
 * The decomposability gap of AP at the finest level, in batches as large as those of training. Only for the
 * creatures that the network learns from.
 */
gap: number | null, };

/**
 * What a run follows from.
 */
export type Settings = {
/**
 * Where the points are. Default: the circle.
 */
space: Space,
/**
 * The loss. Default: HAPPIER.
 */
loss: { [key in string]: JsonValue },
/**
 * P, the number of species in a batch: at least 2. Default: 16.
 */
species: number,
/**
 * K, the number of creatures of each: at least 2. Default: 4.
 */
creatures: number,
/**
 * The learning rate of the network, above 0. Default: 0.005.
 */
rate: number,
/**
 * The learning rate of what the loss learns (proxies), as a multiple of `rate`, above 0. Default: 4.
 */
proxy_rate: number,
/**
 * The seed of weights, batches and draws. Default: 1.
 */
seed: number, };

/**
 * Where the points are.
 */
export type Space = "circle" | "sphere" | "disk";

/**
 * Where a run stands.
 */
export type State = {
/**
 * The number of steps taken.
 */
step: number,
/**
 * [N, d], row after row.
 */
points: Array<number>,
/**
 * What the loss has learned.
 */
proxies: Array<Group>,
/**
 * For a loss with HIER.
 */
tree: Tree | null,
/**
 * The scores, if they were asked for.
 */
measures: Measures | null, };

/**
 * The lowest common ancestors of classes.
 */
export type Tree = {
/**
 * At levels 1 … L, for each class of [`Creatures::taxonomy`], the ancestor ρ with the smallest max d(x, ρ) over the
 * class's training creatures x, by its place in the group (HIER, eq. 6 and 7 without noise, for more than two
 * items). None for a class whose species are all held out.
 */
classes: Array<Array<number | null>>,
/**
 * In the disk, the mean distance of these ancestors from the centre, for each level.
 */
depth: Array<number> | null, };
