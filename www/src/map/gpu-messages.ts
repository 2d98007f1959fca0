// What the page sends to the map on a graphics device, through a port of its own, and the answers. The engine's queue
// would keep a frame waiting behind a picture that is being embedded.

import type { Failure } from "../failure.js";

export interface GpuView {
  /** The size of the canvas in device pixels. */
  width: number;
  height: number;
  /** Device pixels per CSS pixel. */
  ratio: number;
  /** Device pixels per unit of the plane, or the radius of the disk. */
  scale: number;
  centre: readonly [number, number];
  is_disk: boolean;
  /** The radius of a mark in device pixels. */
  radius: number;
  paper: readonly [number, number, number];
}

export type MapMessage =
  /** Red, green, blue, shape and size of each mark. */
  | { kind: "marks"; marks: Float32Array }
  | { kind: "items"; points: Float32Array; marks: Uint16Array; above: Uint8Array }
  | { kind: "tile"; tile: number; picture: ImageBitmap }
  /**
   * Lines: their ends and width in CSS pixels, and red, green and blue from 0 to 1. Pictures: their middle in CSS pixels,
   * mark, tile and opacity.
   */
  | { kind: "frame"; view: GpuView; lines: Float32Array; pictures: Float32Array }
  | { kind: "close" };

/** The first answer, and the answer to each frame: the device has drawn it. */
export type MapReply = { tiles: number } | { drawn: true } | { failure: Failure };

/** The map of the wasm engine. */
export interface MapCanvas {
  free(): void;
  tiles(): number;
  set_marks(marks: Float32Array): void;
  set_items(points: Float32Array, marks: Uint16Array, above: Uint8Array): void;
  set_tile(tile: number, picture: ImageBitmap): void;
  draw(view: GpuView, lines: Float32Array, pictures: Float32Array): Promise<void>;
}
