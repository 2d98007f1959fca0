// What the page and its worker say to each other, and what the engine offers.

import type { Failure } from "./failure.js";

export type Backend = "webgpu" | "cpu";

/** `bundle.json`, as far as the page reads it. Levels run coarse to fine. */
export interface Manifest {
  title: string;
  description: string;
  licence: string;
  model_card: string;
  taxonomy: {
    levels: string[];
    /** Names of the classes, one list a level. */
    classes: string[][];
    /** For each class its parent, one level coarser; empty at the first level. */
    parents: number[][];
  };
  gallery: { count: number };
  queries: { count: number };
  labels: string;
  thumbnails: { tile: number; columns: number; rows: number; sheets: string[] };
  encoders: EncoderEntry[];
  files: { path: string; bytes: number }[];
}

export interface EncoderEntry {
  name: string;
  description: string;
  dimension: number;
  weights: string;
  gallery_embeddings: string;
  query_embeddings: string | null;
  report: Report | null;
}

/**
 * An encoder's means over all queries, each `null` where no query has a positive. The engine does not
 * look into it: any part may be missing.
 */
export interface Report {
  overall?: Means<"h_ap" | "ndcg" | "asi">;
  levels?: LevelReport[];
}

export interface LevelReport extends Means<"ap" | "map_at_r" | "recall@1"> {
  name: string;
}

/** Those of the metrics that were asked for; there may be others beside them. */
export type Means<Metric extends string> = { queries: number } & { [metric in Metric]?: number | null };

/** The scores of one ranking. A score is null where the query has no positives. */
export interface Metrics {
  h_ap: number | null;
  ndcg: number | null;
  asi: number | null;
  levels: { ap: number | null; recall_at_1: number | null }[];
}

export interface Result {
  item: number;
  score: number;
  /** Null where the query's labels are unknown. */
  shared_level: number | null;
}

export interface Vote {
  level: number;
  class: number;
  share: number;
}

export interface Ranked {
  search_ms: number;
  results: Result[];
  metrics: Metrics | null;
  votes: Vote[] | null;
}

export interface Embedded {
  embedding: Float32Array;
  decode_ms: number;
  embed_ms: number;
}

export interface SelfTest {
  cosine: number;
  ms: number;
  passed: boolean;
}

/** The wasm engine (crate akin-web). Everything it throws is a `Failure`. */
export interface Engine {
  open(bundleJson: Uint8Array): unknown;
  load_labels(bytes: Uint8Array): void;
  load_encoder(index: number, weights: Uint8Array, gallery: Uint8Array, queries?: Uint8Array): Promise<SelfTest>;
  verify(path: string, bytes: Uint8Array): void;
  embed(encoder: number, image: Uint8Array): Promise<Embedded>;
  stored(encoder: number, item: number): Float32Array;
  /**
   * `item`: the stored item that asks; it does not rank itself, and its labels are known.
   * `labels`: the labels of an image from outside, where the reader has named them.
   */
  rank(encoder: number, embedding: Float32Array, k: number, item?: number, labels?: Uint32Array): Ranked;
}

/** What the module `akin-web.js` exports. */
export interface EngineModule {
  default(options: { module_or_path: WebAssembly.Module }): Promise<unknown>;
  Engine: { create(backend: Backend): Promise<Engine> };
}

/** Which back end runs, and why not the quicker one. */
export interface Running {
  backend: Backend;
  reason: string;
}

export interface Opened {
  manifest: Manifest;
  /** [gallery + queries, L] class ids, coarse to fine. */
  labels: Uint32Array;
  running: Running;
}

/** One question of the page: what it sends, and what comes back. */
export interface Calls {
  open: { send: { bundle: string; backend: Backend | null; avoid: string | null }; back: Opened };
  encoder: { send: { index: number }; back: SelfTest };
  embed: { send: { encoder: number; image: Uint8Array }; back: Embedded };
  rank: {
    send: { encoder: number; k: number; item: number | null; embedding: Float32Array | null; labels: Uint32Array | null };
    back: Ranked;
  };
  sheet: { send: { index: number }; back: Uint8Array };
}

export type Request = { [K in keyof Calls]: { id: number; kind: K; send: Calls[K]["send"] } }[keyof Calls];

/** The four steps of loading, in the order in which they end. */
export const PHASES = ["code", "gallery", "weights", "warm-up"] as const;
export type Phase = (typeof PHASES)[number];

export type Reply =
  | { id: number; back: unknown }
  | { id: number; failure: Failure }
  | { progress: Phase; path: string; loaded: number; total: number | null; done: boolean }
  | { running: Running }
  | { alive: true };
