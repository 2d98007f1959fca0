// The marks of a map: a colour and a shape for each class, or for each degree of kinship. Shape tells
// what colour tells, for readers who do not see the colours.

import { svg, html, type TemplateResult } from "lit";
import { vars } from "../vars.js";

/** The number of class colours in tokens.css: `--class-1`, `--class-2`, … */
const COLOURS = 8;

/** The shapes as paths of about radius 1 around 0. A ring is drawn as a line, the others are filled. */
const SHAPES = {
  circle: "M-.95 0a.95.95 0 1 0 1.9 0a.95.95 0 1 0-1.9 0z",
  square: "M-.85-.85h1.7v1.7h-1.7z",
  triangle: "M0-1.1L1.05.8h-2.1z",
  diamond: "M0-1.2L1 0L0 1.2L-1 0z",
  cross: "M0-.5L.6-1.1L1.1-.6L.5 0L1.1.6L.6 1.1L0 .5L-.6 1.1L-1.1 .6L-.5 0L-1.1-.6L-.6-1.1z",
  down: "M0 1.1L1.05-.8h-2.1z",
  ring: "M-.75 0a.75.75 0 1 0 1.5 0a.75.75 0 1 0-1.5 0z",
  plus: "M-.36-1.1h.72v.74h.74v.72h-.74v.74h-.72v-.74h-.74v-.72h.74z",
} as const;

export type Shape = keyof typeof SHAPES;
/** The shapes in the order that map.wgsl of the engine knows them by. */
export const SHAPE_NAMES = Object.keys(SHAPES) as Shape[];

export interface Mark {
  /** A colour of the stylesheet, such as `var(--class-1)`. */
  readonly colour: string;
  readonly shape: Shape;
  /** The size against the usual one. */
  readonly size: number;
}

/** The mark of class number `place` of a level. The first eight differ in both colour and shape, the first 64 in one. */
export const classMark = (place: number): Mark => ({
  colour: `var(--class-${(place % COLOURS) + 1})`,
  shape: SHAPE_NAMES[(place + Math.floor(place / COLOURS)) % SHAPE_NAMES.length] ?? "circle",
  size: 1,
});

/** The mark of an item that shares `shared` of `depth` levels with the query: a larger one for nearer kin. */
export function kinMark(shared: number, depth: number): Mark {
  if (shared === 0) return { colour: "var(--kin-stranger)", shape: "ring", size: 0.7 };
  const near = depth <= 1 ? 100 : ((shared - 1) / (depth - 1)) * 100;
  return {
    colour: `color-mix(in oklch, var(--kin-near) ${near}%, var(--kin-far))`,
    shape:
      shared === depth
        ? "circle"
        : ((["triangle", "diamond", "square"] as const)[(depth - shared - 1) % 3] ?? "square"),
    size: 0.8 + (0.4 * shared) / depth,
  };
}

/** A mark beside text. */
export const markIcon = ({ colour, shape }: Mark): TemplateResult =>
  html`<svg
    class="mark"
    viewBox="-1.3 -1.3 2.6 2.6"
    aria-hidden="true"
    data-shape=${shape}
    ${vars({ "--mark": colour })}
  >
    ${svg`<path d=${SHAPES[shape]}></path>`}
  </svg>`;

/** Reads colours of the stylesheet as the browser computes them. */
export function colourReader(root: ShadowRoot): { read: (colour: string) => string; done: () => void } {
  const probe = document.createElement("span");
  probe.hidden = true;
  root.append(probe);
  return {
    read(colour) {
      probe.style.color = colour;
      return getComputedStyle(probe).color;
    },
    done: () => probe.remove(),
  };
}

let probe: CanvasRenderingContext2D | null = null;
const parts = new Map<string, [number, number, number]>();

/** Red, green and blue of a computed colour, each from 0 to 1. */
export function rgb(colour: string): [number, number, number] {
  const known = parts.get(colour);
  if (known) return known;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  probe ??= canvas.getContext("2d", { willReadFrequently: true });
  if (!probe) return [0, 0, 0];
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  const [red = 0, green = 0, blue = 0] = probe.getImageData(0, 0, 1, 1).data;
  const found: [number, number, number] = [red / 255, green / 255, blue / 255];
  parts.set(colour, found);
  return found;
}

/** Draws one mark, whose colour the browser has computed, with an edge that keeps neighbours apart. */
export function drawMark(
  context: CanvasRenderingContext2D,
  mark: Mark,
  x: number,
  y: number,
  r: number,
  edge: string,
): void {
  context.save();
  context.translate(x, y);
  context.scale(r * mark.size, r * mark.size);
  const path = new Path2D(SHAPES[mark.shape]);
  context.lineJoin = "round";
  if (mark.shape === "ring") {
    context.lineWidth = 0.5;
    context.strokeStyle = mark.colour;
  } else {
    context.fillStyle = mark.colour;
    context.fill(path);
    context.lineWidth = 0.3;
    context.strokeStyle = edge;
  }
  context.stroke(path);
  context.restore();
}

/** The pixels of a mark: their places against its middle, and their colours as one number each. */
interface Stamp {
  dx: Int16Array;
  dy: Int16Array;
  colours: Uint32Array;
}

/** The number of the opaque part of a colour. Numbers of pixels have alpha in the highest byte on all usual machines. */
const alphaOf = (colour: number) => colour >>> 24;

/**
 * Many marks as one picture, written pixel by pixel: ten thousand calls of the canvas take several times as long.
 * Where marks overlap, the later one wins, and a faded one never covers another.
 */
export class MarkLayer {
  private readonly canvas = document.createElement("canvas");
  private readonly context = this.canvas.getContext("2d", { willReadFrequently: true });
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(1);
  private stamps: Stamp[] = [];
  private key = "";

  /** Prepares marks of a radius in device pixels, whose colours are computed: first all, then all at the opacity `faded`. */
  prepare(marks: readonly Mark[], radius: number, edge: string, faded: number): void {
    const key = [radius.toFixed(1), edge, faded, ...marks.map((mark) => mark.colour + mark.shape + mark.size)].join();
    if (key === this.key) return;
    this.key = key;
    const side = Math.ceil(radius * 1.6) * 2 + 3;
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = side;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    this.stamps = [1, faded].flatMap((opacity) =>
      marks.map((mark) => {
        if (!context) return { dx: new Int16Array(), dy: new Int16Array(), colours: new Uint32Array() };
        context.clearRect(0, 0, side, side);
        drawMark(context, mark, side / 2, side / 2, radius, edge);
        return stampOf(context.getImageData(0, 0, side, side), opacity);
      }),
    );
  }

  /** Empties the picture. Sizes are in device pixels. */
  clear(width: number, height: number): void {
    if (this.image.width !== width || this.image.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    } else this.pixels.fill(0);
  }

  /** Adds a mark at a place in device pixels. Row 1 has the faded marks. */
  add(mark: number, row: 0 | 1, x: number, y: number): void {
    const stamp = this.stamps[row * (this.stamps.length / 2) + mark];
    if (!stamp) return;
    const { pixels } = this;
    const { width, height } = this.image;
    const { dx, dy, colours } = stamp;
    const [left, top] = [Math.round(x), Math.round(y)];
    for (let at = 0; at < colours.length; at++) {
      const column = left + (dx[at] ?? 0);
      const line = top + (dy[at] ?? 0);
      if (column < 0 || line < 0 || column >= width || line >= height) continue;
      const place = line * width + column;
      const colour = colours[at] ?? 0;
      if (alphaOf(colour) >= alphaOf(pixels[place] ?? 0)) pixels[place] = colour;
    }
  }

  /** Draws the picture. */
  draw(context: CanvasRenderingContext2D): void {
    this.context?.putImageData(this.image, 0, 0);
    context.drawImage(this.canvas, 0, 0);
  }
}

function stampOf({ data, width }: ImageData, opacity: number): Stamp {
  const [dx, dy, colours]: [number[], number[], number[]] = [[], [], []];
  const pixels = new Uint32Array(data.buffer);
  pixels.forEach((colour, at) => {
    const alpha = Math.round(alphaOf(colour) * opacity);
    if (alpha < 12) return;
    dx.push((at % width) - (width >> 1));
    dy.push(Math.floor(at / width) - (width >> 1));
    colours.push(((colour & 0xffffff) | (alpha << 24)) >>> 0);
  });
  return { dx: Int16Array.from(dx), dy: Int16Array.from(dy), colours: Uint32Array.from(colours) };
}
