// Draws a map on a canvas: everything, or only what lies above the items, where the graphics device draws the rest.

import type { Sheet } from "../sprites.js";
import type { Viewport } from "./geometry.js";
import type { GpuDrawing } from "./gpu-drawing.js";
import { drawMark, MarkLayer } from "./marks.js";
import {
  FADED,
  FADED_PICTURE,
  onScreen,
  PICTURE_SIDE,
  PICTURES,
  pointRadius,
  RING_NUMBERS,
  ringRadius,
  strokes,
  type Scene,
  type Seen,
} from "./scene.js";

export type Painted = { visible: number; pictures: boolean };

export class Painter {
  private readonly layer = new MarkLayer();
  private places = new Float32Array(0);

  /** Draws paper, lines and items below the canvas, if it is set. */
  gpu: GpuDrawing | null = null;

  constructor(private readonly canvas: HTMLCanvasElement) {}

  /** The places of all points on the screen, in CSS pixels, as they were last painted. */
  get screen(): Float32Array {
    return this.places;
  }

  paint(scene: Scene, view: Viewport, ratio: number): Painted {
    const { canvas } = this;
    const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const context = canvas.getContext("2d");
    const seen = this.see(scene, view);
    if (!context) return { visible: 0, pictures: false };
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (this.gpu) {
      context.clearRect(0, 0, width, height);
      this.gpu.paint(scene, seen, view, ratio);
    } else {
      context.fillStyle = scene.inks.paper;
      context.fillRect(0, 0, width, height);
      context.scale(ratio, ratio);
      this.paintStrokes(context, scene, view);
      if (seen.pictures) this.paintPictures(context, scene, seen.visible);
      else this.paintPoints(context, scene, view, ratio, seen.visible);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (scene.isDisk) this.paintRingNumbers(context, scene, view);
    this.paintLabels(context, scene, view);
    this.paintFocus(context, scene, view, seen.pictures);
    this.paintLasso(context, scene);
    return { visible: seen.visible.length, pictures: seen.pictures };
  }

  /** Finds the places of all points, and which are on the screen. */
  private see(scene: Scene, view: Viewport): Seen {
    const count = scene.points.length / 2;
    if (this.places.length !== scene.points.length) this.places = new Float32Array(scene.points.length);
    const { places } = this;
    scene.space.project(scene.points, view, places);
    const visible: number[] = [];
    for (let item = 0; item < count; item++) {
      const x = places[2 * item] ?? 0;
      const y = places[2 * item + 1] ?? 0;
      if (x > -9 && y > -9 && x < view.width + 9 && y < view.height + 9) visible.push(item);
    }
    return { places, visible, pictures: scene.hasPictures && visible.length <= PICTURES && view.zoom > 1.2 };
  }

  private paintPoints(
    context: CanvasRenderingContext2D,
    scene: Scene,
    view: Viewport,
    ratio: number,
    visible: readonly number[],
  ): void {
    const { layer } = this;
    const { markOf, faded } = scene;
    layer.prepare(scene.marks, pointRadius(markOf.length, view.zoom) * ratio, scene.inks.paper, FADED);
    layer.clear(this.canvas.width, this.canvas.height);
    for (const item of visible) {
      const row = faded[item] === 1 ? 1 : 0;
      layer.add(markOf[item] ?? 0, row, (this.places[2 * item] ?? 0) * ratio, (this.places[2 * item + 1] ?? 0) * ratio);
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    layer.draw(context);
  }

  private paintPictures(context: CanvasRenderingContext2D, scene: Scene, visible: readonly number[]): void {
    const half = PICTURE_SIDE / 2;
    for (const row of [1, 0]) {
      for (const item of visible) {
        if (scene.faded[item] !== row) continue;
        const [x, y] = [this.places[2 * item] ?? 0, this.places[2 * item + 1] ?? 0];
        const mark = scene.marks[scene.markOf[item] ?? 0];
        const picture = scene.picture(item);
        context.globalAlpha = row === 1 ? FADED_PICTURE : 1;
        context.fillStyle = mark?.colour ?? scene.inks.ink;
        context.fillRect(x - half - 2, y - half - 2, PICTURE_SIDE + 4, PICTURE_SIDE + 4);
        if (picture) {
          const { image, side } = picture;
          context.drawImage(image, picture.x, picture.y, side, side, x - half, y - half, PICTURE_SIDE, PICTURE_SIDE);
        }
        if (mark) {
          context.fillStyle = scene.inks.paper;
          context.fillRect(x + half - 12, y + half - 12, 14, 14);
          drawMark(context, mark, x + half - 5, y + half - 5, 4.5, scene.inks.paper);
        }
      }
    }
    context.globalAlpha = 1;
  }

  private paintStrokes(context: CanvasRenderingContext2D, scene: Scene, view: Viewport): void {
    for (const stroke of strokes(scene, view, this.places)) {
      context.strokeStyle = stroke.colour;
      context.lineWidth = stroke.width;
      context.beginPath();
      if ("radius" in stroke) {
        const { x, y, radius, start, end, anticlockwise } = stroke;
        context.arc(x, y, radius, start, end, anticlockwise);
      } else {
        context.moveTo(...stroke.from);
        context.lineTo(...stroke.to);
      }
      context.stroke();
    }
  }

  private paintRingNumbers(context: CanvasRenderingContext2D, scene: Scene, view: Viewport): void {
    context.fillStyle = scene.inks.soft;
    context.font = scene.font;
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const distance of RING_NUMBERS) {
      const ring = ringRadius(distance, view);
      if (ring + 16 < view.height / 2) context.fillText(String(distance), view.width / 2 + 4, view.height / 2 + ring);
    }
  }

  /** Names at the middles of classes, larger classes first; names that would cover others are left out. */
  private paintLabels(context: CanvasRenderingContext2D, scene: Scene, view: Viewport): void {
    if (scene.labels.length === 0) return;
    const places = new Float32Array(scene.labels.length * 2);
    scene.space.project(Float32Array.from(scene.labels.flatMap(({ at }) => at)), view, places);
    context.font = scene.font;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const taken: [number, number, number, number][] = [];
    scene.labels.forEach(({ text, mark }, at) => {
      const [x, y] = [places[2 * at] ?? 0, places[2 * at + 1] ?? 0];
      const half = context.measureText(text).width / 2 + 4;
      const box: [number, number, number, number] = [x - half, y - 8, x + half, y + 20];
      if (box[0] < 0 || box[2] > view.width || box[1] < 0 || box[3] > view.height) return;
      if (taken.some(([l, t, r, b]) => box[0] < r && box[2] > l && box[1] < b && box[3] > t)) return;
      taken.push(box);
      const drawn = scene.marks[mark];
      if (drawn) {
        context.beginPath();
        context.fillStyle = scene.inks.paper;
        context.arc(x, y, 8, 0, 2 * Math.PI);
        context.fill();
        drawMark(context, drawn, x, y, 6, scene.inks.ink);
      }
      context.lineWidth = 4;
      context.strokeStyle = scene.inks.paper;
      context.strokeText(text, x, y + 14);
      context.fillStyle = scene.inks.ink;
      context.fillText(text, x, y + 14);
    });
  }

  private paintFocus(context: CanvasRenderingContext2D, scene: Scene, view: Viewport, pictures: boolean): void {
    const around = (x: number, y: number, colour: string, width: number) => {
      const r = pictures ? PICTURE_SIDE * 0.78 : 10;
      for (const [colourOf, widthOf] of [
        [scene.inks.paper, width + 3],
        [colour, width],
      ] as const) {
        context.strokeStyle = colourOf;
        context.lineWidth = widthOf;
        context.beginPath();
        context.arc(x, y, r, 0, 2 * Math.PI);
        context.stroke();
      }
    };
    if (scene.query !== null) around(...onScreen(scene.query, scene, view), scene.inks.accent, 3);
    const { focus } = scene;
    if (focus !== null) around(this.places[2 * focus] ?? 0, this.places[2 * focus + 1] ?? 0, scene.inks.ink, 2);
  }

  private paintLasso(context: CanvasRenderingContext2D, scene: Scene): void {
    if (scene.lasso.length < 2) return;
    context.beginPath();
    scene.lasso.forEach(([x, y], at) => (at === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    context.closePath();
    context.strokeStyle = scene.inks.accent;
    context.lineWidth = 1.5;
    context.setLineDash([5, 4]);
    context.stroke();
    context.setLineDash([]);
  }
}

/** Loads the sheets of thumbnails as images, and tells when another has come. */
export class Pictures {
  private readonly images = new Map<number, HTMLImageElement | null>();

  constructor(
    private readonly sheet: (index: number) => Promise<Sheet>,
    private readonly came: () => void,
  ) {}

  /** The image of a sheet; null while it loads or if it cannot be loaded. */
  get(index: number): HTMLImageElement | null {
    const known = this.images.get(index);
    if (known !== undefined) return known;
    this.images.set(index, null);
    void this.load(index);
    return null;
  }

  private async load(index: number): Promise<void> {
    try {
      const { url } = await this.sheet(index);
      const image = new Image();
      image.src = url;
      await image.decode();
      this.images.set(index, image);
      this.came();
    } catch {
      // The thumbnails of the lists beside the map say why a sheet is missing.
    }
  }
}
