// The part of a map that the engine's graphics device draws, on a canvas of its own below that of the page: paper,
// lines and items.

import { toFailure, type Failure } from "../failure.js";
import type { Running } from "../protocol.js";
import type { Viewport } from "./geometry.js";
import type { GallerySource } from "./gallery-source.js";
import type { MapMessage, MapReply } from "./gpu-messages.js";
import { rgb, SHAPE_NAMES } from "./marks.js";
import { FADED, FADED_PICTURE, pointRadius, strokes, type Scene, type Seen, type Stroke } from "./scene.js";

/**
 * Whether the engine's device draws the map. A software adapter does so more slowly than the 2-D canvas, and a browser
 * without a graphics card may lose it on the way; then only a reader who has chosen WebGPU gets it.
 */
export const isDrawnByGpu = (running: Running | null, chosen: boolean): boolean =>
  running?.backend === "webgpu" && (chosen || running.adapter?.software === false);

interface Frame {
  scene: Scene;
  seen: Seen;
  view: Viewport;
  ratio: number;
}

interface Tile {
  number: number;
  isLoaded: boolean;
}

interface Listeners {
  /** A frame has been drawn. */
  drawn: () => void;
  /** A picture has come that the last frame lacks. */
  changed: () => void;
  /** Nothing more will be drawn. */
  failed: (failure: Failure) => void;
}

export class GpuDrawing {
  private tiles = 0;
  /** The tile of each item that has one, the last used one last. */
  private readonly tileOf = new Map<number, Tile>();
  private marks: Scene["marks"] | null = null;
  private paper = "";
  private points: Scene["points"] | null = null;
  private markOf: Scene["markOf"] | null = null;
  private faded: Scene["faded"] | null = null;
  private next: Frame | null = null;
  private drawing = true;

  private constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly port: MessagePort,
    private readonly on: Listeners,
  ) {
    port.addEventListener("message", ({ data }: MessageEvent<MapReply>) => this.receive(data));
    port.start();
  }

  /** Hands a canvas to the engine, and puts it below the others of `stage`. */
  static open(stage: Element, source: GallerySource, on: Listeners): GpuDrawing {
    const canvas = document.createElement("canvas");
    canvas.className = "ground";
    canvas.ariaHidden = "true";
    const { port1, port2 } = new MessageChannel();
    const drawing = new GpuDrawing(canvas, port1, on);
    stage.append(canvas);
    source.drawOn(canvas.transferControlToOffscreen(), port2).catch((error: unknown) => on.failed(toFailure(error)));
    return drawing;
  }

  close(): void {
    this.canvas.remove();
    this.send({ kind: "close" });
    this.port.close();
  }

  /** Whether the device still has a frame to draw. */
  get isDrawing(): boolean {
    return this.drawing || this.next !== null;
  }

  /** Draws a frame when the device has drawn the one before. Frames that come in between are left out. */
  paint(scene: Scene, seen: Seen, view: Viewport, ratio: number): void {
    this.next = { scene, seen, view, ratio };
    if (!this.drawing) this.sendNext();
  }

  private receive(reply: MapReply): void {
    if ("failure" in reply) {
      this.on.failed(reply.failure);
      return;
    }
    if ("tiles" in reply) this.tiles = reply.tiles;
    this.drawing = false;
    this.sendNext();
    this.on.drawn();
  }

  private send(message: MapMessage, transfer: Transferable[] = []): void {
    this.port.postMessage(message, transfer);
  }

  private sendNext(): void {
    const { next } = this;
    if (!next) return;
    this.next = null;
    this.drawing = true;
    const { scene, seen, view, ratio } = next;
    this.sendMarks(scene);
    this.sendItems(scene);
    const lines = Float32Array.from(strokes(scene, view, seen.places).flatMap((stroke) => linesOf(stroke, view)));
    const pictures = seen.pictures ? this.pictures(scene, seen) : new Float32Array();
    this.send({
      kind: "frame",
      view: {
        width: Math.round(view.width * ratio),
        height: Math.round(view.height * ratio),
        ratio,
        scale: scene.space.scale(view) * ratio,
        centre: [...view.centre],
        is_disk: scene.isDisk,
        radius: pointRadius(scene.markOf.length, view.zoom) * ratio,
        paper: rgb(scene.inks.paper),
      },
      lines,
      pictures,
    });
  }

  /** All marks, and all once more in the colours of faded ones, which then hide what they lie on as the others do. */
  private sendMarks({ marks, inks }: Scene): void {
    if (marks === this.marks && inks.paper === this.paper) return;
    // The number of a faded mark depends on the number of marks.
    if (marks.length !== this.marks?.length) this.markOf = null;
    this.marks = marks;
    this.paper = inks.paper;
    const paper = rgb(inks.paper);
    const rows = [1, FADED].flatMap((opacity) =>
      marks.flatMap(({ colour, shape, size }) => [
        ...rgb(colour).map((part, at) => opacity * part + (1 - opacity) * (paper[at] ?? 0)),
        SHAPE_NAMES.indexOf(shape),
        size,
      ]),
    );
    this.send({ kind: "marks", marks: Float32Array.from(rows) });
  }

  private sendItems({ points, markOf, faded, marks }: Scene): void {
    if (points === this.points && markOf === this.markOf && faded === this.faded) return;
    if (points !== this.points) this.tileOf.clear();
    [this.points, this.markOf, this.faded] = [points, markOf, faded];
    this.send({
      kind: "items",
      points,
      marks: markOf.map((mark, item) => (faded[item] === 1 ? mark + marks.length : mark)),
      above: faded.map((isFaded) => 1 - isFaded),
    });
  }

  /** The pictures of the items on the screen, faded ones first. */
  private pictures(scene: Scene, { visible, places }: Seen): Float32Array {
    const sorted = visible.toSorted((a, b) => (scene.faded[b] ?? 0) - (scene.faded[a] ?? 0));
    const rows = sorted.flatMap((item) => [
      places[2 * item] ?? 0,
      places[2 * item + 1] ?? 0,
      scene.markOf[item] ?? 0,
      this.tileFor(item, scene),
      scene.faded[item] === 1 ? FADED_PICTURE : 1,
    ]);
    return Float32Array.from(rows);
  }

  /** The tile with the picture of an item; −1 while it loads. */
  private tileFor(item: number, scene: Scene): number {
    const known = this.tileOf.get(item);
    if (known) {
      this.tileOf.delete(item);
      this.tileOf.set(item, known);
      return known.isLoaded ? known.number : -1;
    }
    const picture = scene.picture(item);
    if (!picture) return -1;
    let number = this.tileOf.size;
    if (number >= this.tiles) {
      const [oldest] = this.tileOf;
      if (!oldest) return -1;
      number = oldest[1].number;
      this.tileOf.delete(oldest[0]);
    }
    const tile = { number, isLoaded: false };
    this.tileOf.set(item, tile);
    // A picture that cannot be read stays a frame in the colour of its class.
    this.load(item, tile, picture).catch(() => {});
    return -1;
  }

  private async load(item: number, tile: Tile, picture: NonNullable<ReturnType<Scene["picture"]>>): Promise<void> {
    const { image, x, y, side } = picture;
    const bitmap = await createImageBitmap(image, x, y, side, side);
    // Another item may have taken the tile.
    if (this.tileOf.get(item) !== tile) return;
    tile.isLoaded = true;
    this.send({ kind: "tile", tile: tile.number, picture: bitmap }, [bitmap]);
    this.on.changed();
  }
}

/** A stroke as straight lines as the engine reads them; a curve leaves its circle by at most `SAG` pixels. */
function linesOf(stroke: Stroke, { width, height }: Viewport): number[] {
  const colour = rgb(stroke.colour);
  const points = "radius" in stroke ? pointsOf(stroke) : [stroke.from, stroke.to];
  const lines: number[] = [];
  points.forEach(([x, y], at) => {
    const [u, v] = points[at + 1] ?? [x, y];
    const isSeen =
      Math.max(x, u) > -2 && Math.max(y, v) > -2 && Math.min(x, u) < width + 2 && Math.min(y, v) < height + 2;
    if (isSeen && at < points.length - 1) lines.push(x, y, u, v, stroke.width, ...colour);
  });
  return lines;
}

const SAG = 0.1;

function pointsOf({ x, y, radius, start, end, anticlockwise }: Extract<Stroke, { radius: number }>) {
  const turn = 2 * Math.PI;
  const forward = anticlockwise ? start - end : end - start;
  const swept = forward >= turn ? turn : ((forward % turn) + turn) % turn;
  const steps = Math.max(1, Math.ceil(swept / (2 * Math.acos(1 - SAG / Math.max(1, radius)))));
  return Array.from({ length: steps + 1 }, (_, step): [number, number] => {
    const angle = start + ((anticlockwise ? -1 : 1) * swept * step) / steps;
    return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
  });
}
