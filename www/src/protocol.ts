// The messages between the page and its worker, and the interface of the engine.

import type { Failure } from "./failure.js";
import type { MapCanvas } from "./map/gpu-messages.js";

export type Backend = "webgpu" | "cpu";

/** The fields of `bundle.json` that the page reads. Levels run coarse to fine. */
export interface Manifest {
  title: string;
  description: string;
  licence: string;
  model_card: string;
  taxonomy: {
    levels: string[];
    /** The names of the classes, one list per level. */
    classes: string[][];
    /** The parent of each class, one level coarser; empty at the first level. */
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
  /** Hash encoders of one family differ in the number of bits, which is their dimension. */
  family?: string;
  dimension: number;
  weights: string;
  gallery_embeddings: string;
  query_embeddings: string | null;
  report: Report | null;
  /** 2-D maps of the gallery: f32 coordinates, [gallery, 2], y upwards. */
  maps?: GalleryMap[];
  /** The mean score of each pair of classes of a level: f32, [C, C]. */
  affinities?: Affinity[];
  /** The scores of each stored query or, without any, of each gallery item: f32, [queries, columns]; −1 for none. */
  query_scores?: { columns: { metric: string; level: number }[]; scores: string };
  /** Percentiles 0 … 100 of each gallery item's score to the most similar other item. */
  best_scores?: { quantiles: number[] };
}

export interface GalleryMap {
  name: string;
  description: string;
  coordinates: string;
  geometry?: "plane" | "poincare_disk";
  proxies?: MapProxies;
}

/** The learned ancestors of the items on a map: f32 [P, 2], u32 [P, per_proxy], u32 [gallery, L]. */
export interface MapProxies {
  count: number;
  coordinates: string;
  per_proxy: number;
  nearest: string;
  ancestors: string;
}

export interface Affinity {
  /** 1 … L. */
  level: number;
  classes: number[];
  scores: string;
}

/** What an encoder's embeddings are ranked by, as core names it. */
export type Similarity = "cosine" | "euclidean" | "dot" | "hamming" | { poincare: { curvature: number } };

/**
 * The means of an encoder over all queries; `null` where no query has a positive. Any part may be
 * missing, because the evaluation computes only some of the metrics.
 */
export interface Report {
  config?: { similarity?: Similarity };
  overall?: Means<"h_ap" | "ndcg" | "asi">;
  levels?: LevelReport[];
}

export interface LevelReport extends Means<"ap" | "map_at_r" | "recall@1"> {
  name: string;
}

/** The means of the metrics that were evaluated; there may be others. */
export type Means<Metric extends string> = { queries: number } & { [metric in Metric]?: number | null };

/** The metrics of one ranking, by name (`h_ap`, `recall@1`). A metric is null where the query has no positives. */
export interface Metrics {
  /** The metrics that the bundle asks for, in its order. */
  described: MetricInfo[];
  overall: Record<string, number | null>;
  /** Coarse to fine. */
  levels: Record<string, number | null>[];
}

/** What core's catalogue says about a metric. */
export interface MetricInfo {
  name: string;
  /** The name in a table: `R@1`. */
  label: string;
  /** The name in the literature. */
  title: string;
  /** A share is from 0 to 1; levels are from 0 to L. */
  unit: "share" | "levels";
  greater_is_better: boolean;
  per_level: boolean;
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
  /** Null where the query's labels are known, or the gallery has no labels. */
  votes: Vote[] | null;
  /** Null where the best scores of the gallery are unknown. */
  likeness: Likeness | null;
  /** The codes of the query and of the results, in their order, as texts of 0 and 1; null where the encoder has none. */
  codes: { query: string; results: string[] } | null;
}

/** How alike a picture and its nearest item are. */
export interface Likeness {
  best: number;
  /** 99 % of the gallery's own items have a best score of at least this. */
  unlike_below: number;
  /** Whether the picture is unlike everything in the gallery. */
  unlike: boolean;
}

/** A gallery of the reader's own pictures: level names, and the labels of each picture, row by row. */
export interface OwnRows {
  levels: string[];
  rows: string[];
}

export interface OwnLabels {
  classes: string[][];
  parents: number[][];
  /** Class ids, row by row. */
  labels: number[];
}

export interface Embedded {
  embedding: Float32Array;
  decode_ms: number;
  embed_ms: number;
}

/** Where two pictures carry their score. */
export interface Look {
  score: number;
  /** Whether the score is a sum over cells. Otherwise `occlude` gives the values. */
  exact: boolean;
  query: LookSide;
  item: LookSide;
  /** The part of each pair of cells, [query's cells, item's cells]. */
  pairs: number[] | null;
}

/** One of the two pictures, as a grid of cells. */
export interface LookSide {
  rows: number;
  columns: number;
  /** What the encoder sees, as shares of the picture: left, top, width, height. */
  region: [number, number, number, number];
  /** What each cell adds to the score, row by row; null where the score is no sum. */
  values: number[] | null;
  embedding: number[];
}

export interface SelfTest {
  cosine: number;
  ms: number;
  passed: boolean;
}

/** The graphics adapter that the engine computes with. */
export interface Adapter {
  /** What the browser tells of it, such as `nvidia ampere`; empty where it tells nothing. */
  name: string;
  /** Whether the processor does its work. */
  software: boolean;
  /** The largest buffer in bytes. */
  largest_buffer: number;
  /** Whether shaders have numbers of 16 bits. */
  half_precision: boolean;
}

/** The wasm engine (crate akin-web). It throws a `Failure`, and nothing else. */
export interface Engine {
  /** Null on the CPU. */
  adapter(): Adapter | null;
  /** Needs WebGPU. */
  map(canvas: OffscreenCanvas, tile: number): MapCanvas;
  open(bundleJson: Uint8Array): void;
  load_labels(bytes: Uint8Array): void;
  load_encoder(index: number, weights: Uint8Array, gallery: Uint8Array, queries?: Uint8Array): Promise<SelfTest>;
  verify(path: string, bytes: Uint8Array): void;
  embed(encoder: number, image: Uint8Array): Promise<Embedded>;
  look(encoder: number, query: Uint8Array, item: Uint8Array): Promise<Look>;
  /** By how much the score falls when each patch of a row of `image` is covered. */
  occlude(
    encoder: number,
    image: Uint8Array,
    embedding: Float32Array,
    other: Float32Array,
    row: number,
  ): Promise<Float32Array>;
  start_own_gallery(levels: string[], rows: string[]): OwnLabels;
  embed_own_gallery(encoder: number, embeddings: Float32Array): void;
  /**
   * `item`: the query, if it is an item of the gallery; its labels are known, and it does not rank itself. Otherwise
   * `embedding`, and `labels` where the reader has chosen them. `own`: ranks the gallery of own pictures.
   */
  rank(
    encoder: number,
    k: number,
    embedding: Float32Array | undefined,
    item: number | undefined,
    labels: Uint32Array | undefined,
    own: boolean,
  ): Ranked;
}

/** The exports of the module `akin-web.js`. */
export interface EngineModule {
  default(options: { module_or_path: WebAssembly.Module }): Promise<{ readonly memory: WebAssembly.Memory }>;
  Engine: { create(backend: Backend, onLost: (reason: string) => void): Promise<Engine> };
}

/** The back end that runs, and why it was chosen. */
export interface Running {
  backend: Backend;
  reason: string;
  /** Null on the CPU. */
  adapter: Adapter | null;
}

export interface Opened {
  manifest: Manifest;
  /** [gallery + queries, L] class ids, coarse to fine. */
  labels: Uint32Array;
  running: Running;
}

/** The requests of the page: parameters and result of each kind. */
export interface Calls {
  /** `cpuReason`: why only the CPU may run, after WebGPU has failed. */
  open: {
    params: {
      bundle: string;
      /** The files of a bundle on the reader's device, by their paths. Null for a bundle on a server. */
      files: ReadonlyMap<string, File> | null;
      backend: Backend | null;
      cpuReason: string | null;
    };
    result: Opened;
  };
  encoder: { params: { index: number }; result: SelfTest };
  embed: { params: { encoder: number; image: Uint8Array }; result: Embedded };
  rank: {
    params: {
      encoder: number;
      k: number;
      item: number | null;
      embedding: Float32Array | null;
      labels: Uint32Array | null;
      own: boolean;
    };
    result: Ranked;
  };
  look: { params: { encoder: number; query: Uint8Array; item: Uint8Array }; result: Look };
  occlude: {
    params: { encoder: number; image: Uint8Array; embedding: number[]; other: number[]; row: number };
    result: Float32Array;
  };
  sheet: { params: { index: number }; result: Uint8Array };
  /** Starts a gallery of the reader's own pictures; `embedOwn` gives it the embeddings of an encoder. */
  startOwn: { params: OwnRows; result: OwnLabels };
  embedOwn: { params: { encoder: number; embeddings: Float32Array }; result: null };
  /** Draws a map on a canvas, as `gpu-messages.ts` tells it through the port; `tile` is the side of a thumbnail. */
  map: { params: { canvas: OffscreenCanvas; port: MessagePort; tile: number }; result: null };
  /** The addresses of the files that the worker has loaded. */
  files: { params: Record<never, never>; result: string[] };
  /** Any file of the bundle, checked. */
  file: { params: { path: string }; result: Uint8Array };
}

export type Request = { [K in keyof Calls]: { id: number; kind: K; params: Calls[K]["params"] } }[keyof Calls];

/** The four steps of loading, in the order in which they end. */
export const PHASES = ["code", "gallery", "weights", "warm-up"] as const;
export type Phase = (typeof PHASES)[number];

/** `broken`: the connection broke off, and the download will go on. */
export type ProgressState = "running" | "broken" | "done";

export type Reply =
  | { id: number; result: unknown }
  | { id: number; failure: Failure }
  | { progress: Phase; path: string; loaded: number; total: number | null; state: ProgressState }
  | { running: Running }
  | { alive: true };
