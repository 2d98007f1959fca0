// The messages between the page and its worker.

import type { Failure } from "./failure.js";
import type {
  Adapter,
  Contents,
  Embedded,
  FileEntry,
  Look,
  OwnLabels,
  Ranked,
  Report,
  ParityCheck,
  EncoderEntry as StoredEntry,
} from "./messages/engine.js";

export type Backend = "webgpu" | "cpu";

/** Files by their paths: those of a folder on the reader's device, or a port to a notebook, which is asked for each. */
export type Files = ReadonlyMap<string, File> | MessagePort;

/** What is asked for through such a port. */
export interface FileRequest {
  id: number;
  path: string;
}

export interface FileAnswer {
  id: number;
  bytes: Uint8Array | null;
  /** Why there are none. */
  reason: string;
}

/** The fields of `bundle.json` that the page reads. Levels run coarse to fine. */
export type Manifest = Omit<Contents, "encoders"> & {
  encoders: EncoderEntry[];
  files: FileEntry[];
  digest: string;
};

/** An encoder; one with a gallery of the reader's own pictures has no report. */
export type EncoderEntry = Omit<StoredEntry, "report"> & {
  report: Report | null;
  /** These two are the engine's; the page only passes them on. */
  architecture?: unknown;
  preprocessing?: unknown;
};

/** A gallery of the reader's own pictures: level names, and the labels of each picture, row by row. */
export interface OwnRows {
  levels: string[];
  rows: string[];
}

/** How far an encoder agrees with the trainer on a back end. */
export interface Parity extends ParityCheck {
  encoder: string;
  backend: Backend;
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

/** `search_ms`: the time of the engine in milliseconds. */
export type Searched = Ranked & { search_ms: number };

/** The requests of the page: parameters and result of each kind. */
export interface Calls {
  /** `cpuReason`: why only the CPU may run, after WebGPU has failed. */
  open: {
    params: {
      bundle: string;
      /** The files of a bundle that is on no server. Null for one that is. */
      files: Files | null;
      backend: Backend | null;
      cpuReason: string | null;
    };
    result: Opened;
  };
  encoder: { params: { index: number }; result: null };
  embed: { params: { encoder: number; image: Blob }; result: Embedded };
  rank: {
    params: {
      encoder: number;
      k: number;
      item: number | null;
      embedding: number[] | null;
      labels: Uint32Array | null;
      own: boolean;
    };
    result: Searched;
  };
  /** `embed` and `rank` in one request, between which the engine does not wait for the page. */
  search: {
    params: { encoder: number; k: number; image: Blob; labels: Uint32Array | null; own: boolean };
    result: { embedded: Embedded; ranked: Searched };
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
  | { parity: Parity }
  | { alive: true };
