// The wasm engine (crate akin-web), as the worker calls it.

import type { Network } from "./onnx.js";
import type { Backend } from "./protocol.js";
import type { Adapter, Embedded, Look, MapView, OwnLabels, ParityCheck, Ranked } from "./messages/engine.js";

/** It throws a `Failure`, and nothing else. */
export interface Engine {
  /** Null on the CPU. */
  adapter(): Adapter | null;
  /** Needs WebGPU. */
  map(canvas: OffscreenCanvas, tile: number): MapCanvas;
  open(bundleJson: Uint8Array): void;
  load_labels(bytes: Uint8Array): void;
  /** An encoder of embeddings alone has no weights. `run` runs the ONNX file of the encoder, if it has one. */
  load_encoder(
    index: number,
    weights: Uint8Array | undefined,
    gallery: Uint8Array,
    queries: Uint8Array | undefined,
    run: Network["run"] | undefined,
  ): void;
  /** Compares the embeddings of the first parity pictures, one after another, with the file of the trainer's. */
  check_parity(encoder: number, embeddings: Float32Array, trainers: Uint8Array): ParityCheck;
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

/** What the worker needs of the instance itself. */
export interface EngineExports {
  readonly memory: WebAssembly.Memory;
  /** Runs the constructors of all crates. The engine needs that once, before anything else. */
  __wasm_call_ctors(): void;
}

/** The exports of the module `akin-web.js`. */
export interface EngineModule {
  default(options: { module_or_path: WebAssembly.Module }): Promise<EngineExports>;
  Engine: { create(backend: Backend, onLost: (reason: string) => void): Promise<Engine> };
}

/** A map on a canvas. */
export interface MapCanvas {
  free(): void;
  tiles(): number;
  set_marks(marks: Float32Array): void;
  set_items(points: Float32Array, marks: Uint16Array, above: Uint8Array): void;
  set_tile(tile: number, picture: ImageBitmap): void;
  draw(view: MapView, lines: Float32Array, pictures: Float32Array): Promise<void>;
}
