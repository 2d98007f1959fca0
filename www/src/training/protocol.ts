// What crosses between the page, the worker of the training ground and its wasm module
// (web/training-ground/src/face.rs).

import type { Failure } from "../failure.js";

export const SPACES = ["circle", "sphere", "disk"] as const;
export type Space = (typeof SPACES)[number];

/** Names and labels of the creatures. Levels run coarse to fine. */
export interface Description {
  levels: string[];
  /** The names of the classes at each level. */
  classes: string[][];
  /** [N, L], row after row. */
  labels: number[];
  held_out: boolean[];
  /** The number of measurements of each creature. */
  features: number;
}

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type Table = { [key: string]: Json };

/** A loss of the catalogue with its settings. */
export interface Offer {
  name: string;
  title: string;
  family: string;
  summary: string;
  settings: Table;
}

export interface RunSettings {
  space: Space;
  loss: Table;
  /** P, the number of species in a batch. */
  species: number;
  /** K, the number of creatures of each. */
  creatures: number;
  rate: number;
  seed: number;
}

export interface Scores {
  h_ap: number | null;
  /** AP at each level. */
  ap: (number | null)[];
  /** The decomposability gap at the finest level, in batches of the size of training. Not for the held-out species. */
  gap: number | null;
}

export interface Measures {
  step: number;
  training: Scores;
  held_out: Scores;
}

/** Vectors that a loss has learned, as points of the space. */
export interface Group {
  /** Whether they are HIER's ancestors, which stand for no class. */
  ancestors: boolean;
  /** [n, d], row after row. */
  points: number[];
}

/** The lowest common ancestors of classes, for a loss with HIER. */
export interface Tree {
  /** At each level, for each class, the place of its ancestor in the group; null where its species are all held out. */
  classes: (number | null)[][];
  /** In the disk, the mean distance of these ancestors from the centre, for each level. */
  depth: number[] | null;
}

/** Where a run stands. */
export interface State {
  step: number;
  /** [N, d], row after row. */
  points: number[];
  proxies: Group[];
  tree: Tree | null;
  measures: Measures | null;
}

/** The requests to the worker. */
export interface Calls {
  open: { params: { text: string }; result: Description };
  losses: { params: { space: Space }; result: Offer[] };
  start: { params: { runs: RunSettings[] }; result: State[] };
  /** Takes steps in every run, and measures after the last. */
  advance: { params: { steps: number; measured: boolean }; result: State[] };
}

export type Request = { [K in keyof Calls]: { id: number; kind: K; params: Calls[K]["params"] } }[keyof Calls];
/** The worker holds a lock of its own name while it lives, and says so once. */
export type Reply =
  { alive: true } | { id: number; result: Calls[keyof Calls]["result"] } | { id: number; failure: Failure };
