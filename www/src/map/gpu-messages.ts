// What the page sends to the map on a graphics device, through a port of its own, and the answers. The engine's queue
// would keep a frame waiting behind a picture that is being embedded.

import type { Failure } from "../failure.js";
import type { MapView } from "../messages/engine.js";

export type MapMessage =
  /** Red, green, blue, shape and size of each mark. */
  | { kind: "marks"; marks: Float32Array }
  | { kind: "items"; points: Float32Array; marks: Uint16Array; above: Uint8Array }
  | { kind: "tile"; tile: number; picture: ImageBitmap }
  /**
   * Lines: their ends and width in CSS pixels, and red, green and blue from 0 to 1. Pictures: their middle in CSS pixels,
   * mark, tile and opacity.
   */
  | { kind: "frame"; view: MapView; lines: Float32Array; pictures: Float32Array }
  | { kind: "close" };

/** The first answer, and the answer to each frame: the device has drawn it. */
export type MapReply = { tiles: number } | { drawn: true } | { failure: Failure };
