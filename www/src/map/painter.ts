// Draws a map on a canvas.

import type { Sheet } from "../sprites.js";
import { diskRadius, geodesic, mobius, type Points, type Space, type Viewport } from "./geometry.js";
import { drawMark, MarkLayer, type Mark } from "./marks.js";

/** The colours that a map is drawn with, as the browser computes them. */
export interface Inks {
  paper: string;
  ink: string;
  soft: string;
  line: string;
  accent: string;
}

export interface Label {
  text: string;
  /** The point of the map where it stands. */
  at: [number, number];
  /** Its mark: the middle of a class. */
  mark: number;
}

/** What a map shows. */
export interface Scene {
  points: Points;
  space: Space;
  isDisk: boolean;
  /** The marks, with computed colours, and the mark of each point. */
  marks: readonly Mark[];
  markOf: Uint16Array;
  /** 1 where a point is faded, because others are chosen. */
  faded: Uint8Array;
  /** The point of the map where the query stands. */
  query: readonly [number, number] | null;
  /** The query's nearest items, nearest first. */
  nearest: readonly number[];
  focus: number | null;
  labels: readonly Label[];
  lasso: readonly (readonly [number, number])[];
  /** The picture of an item: its sheet and the place on it; null while it loads. */
  picture: (item: number) => { image: HTMLImageElement; x: number; y: number; side: number } | null;
  inks: Inks;
  font: string;
}

/** So many items on the screen are drawn as pictures. */
const PICTURES = 90;
const PICTURE_SIDE = 44;
const FADED = 0.22;

export type Painted = { visible: number; pictures: boolean };

/** The radius of a point in CSS pixels: smaller in large galleries, growing with the zoom. */
export const pointRadius = (count: number, zoom: number): number =>
  Math.min(7, Math.max(1.8, 5.5 / Math.max(1, count / 400) ** 0.28) * Math.max(1, zoom) ** 0.25);

export class Painter {
  private readonly layer = new MarkLayer();
  private places = new Float32Array(0);

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
    const context = canvas.getContext("2d", { alpha: false });
    const count = scene.points.length / 2;
    if (this.places.length !== scene.points.length) this.places = new Float32Array(scene.points.length);
    scene.space.project(scene.points, view, this.places);
    if (!context) return { visible: 0, pictures: false };
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = scene.inks.paper;
    context.fillRect(0, 0, width, height);

    const visible: number[] = [];
    for (let item = 0; item < count; item++) {
      const x = this.places[2 * item] ?? 0;
      const y = this.places[2 * item + 1] ?? 0;
      if (x > -9 && y > -9 && x < view.width + 9 && y < view.height + 9) visible.push(item);
    }
    context.scale(ratio, ratio);
    if (scene.isDisk) this.paintDisk(context, scene, view);
    this.paintLinks(context, scene, view);
    const pictures = visible.length <= PICTURES && view.zoom > 1.2;
    if (pictures) this.paintPictures(context, scene, visible);
    else this.paintPoints(context, scene, view, ratio, visible);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paintLabels(context, scene, view);
    this.paintFocus(context, scene, view, pictures);
    this.paintLasso(context, scene);
    return { visible: visible.length, pictures };
  }

  private paintPoints(
    context: CanvasRenderingContext2D,
    scene: Scene,
    view: Viewport,
    ratio: number,
    visible: number[],
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

  private paintPictures(context: CanvasRenderingContext2D, scene: Scene, visible: number[]): void {
    const half = PICTURE_SIDE / 2;
    for (const row of [1, 0]) {
      for (const item of visible) {
        if (scene.faded[item] !== row) continue;
        const [x, y] = [this.places[2 * item] ?? 0, this.places[2 * item + 1] ?? 0];
        const mark = scene.marks[scene.markOf[item] ?? 0];
        const picture = scene.picture(item);
        context.globalAlpha = row === 1 ? 1.5 * FADED : 1;
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

  /** The rim of the disk and rings at the hyperbolic distances 1, 2, … from the middle of the screen. */
  private paintDisk(context: CanvasRenderingContext2D, scene: Scene, view: Viewport): void {
    const [x, y] = [view.width / 2, view.height / 2];
    const r = diskRadius(view);
    context.strokeStyle = scene.inks.line;
    context.fillStyle = scene.inks.soft;
    context.font = scene.font;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.lineWidth = 1;
    for (let distance = 1; distance <= 6; distance++) {
      const ring = Math.tanh(distance / 2) * r;
      context.beginPath();
      context.arc(x, y, ring, 0, 2 * Math.PI);
      context.stroke();
      if (distance <= 3 && ring + 16 < view.height / 2) context.fillText(String(distance), x + 4, y + ring);
    }
    context.strokeStyle = scene.inks.soft;
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(x, y, r, 0, 2 * Math.PI);
    context.stroke();
  }

  private onScreen(point: readonly [number, number], scene: Scene, view: Viewport): [number, number] {
    const place = new Float32Array(2);
    scene.space.project(Float32Array.from(point), view, place);
    return [place[0] ?? 0, place[1] ?? 0];
  }

  /** Lines from the query to its nearest items: straight ones in the plane, geodesics in the disk. */
  private paintLinks(context: CanvasRenderingContext2D, scene: Scene, view: Viewport): void {
    const { query, nearest, markOf, points } = scene;
    if (query === null) return;
    const from = this.onScreen(query, scene, view);
    const back: [number, number] = [-view.centre[0], -view.centre[1]];
    nearest.forEach((item, rank) => {
      context.strokeStyle = scene.marks[markOf[item] ?? 0]?.colour ?? scene.inks.ink;
      context.lineWidth = Math.max(1, 2.4 - rank * 0.15);
      context.beginPath();
      const to: [number, number] = [points[2 * item] ?? 0, points[2 * item + 1] ?? 0];
      const arc = scene.isDisk ? geodesic(mobius(back, query), mobius(back, to)) : null;
      if (arc && arc.radius < 1e4) {
        const r = diskRadius(view);
        // The screen's y runs downwards, so angles change their sign.
        context.arc(
          view.width / 2 + arc.x * r,
          view.height / 2 - arc.y * r,
          arc.radius * r,
          -arc.from,
          -arc.to,
          !arc.anticlockwise,
        );
      } else {
        context.moveTo(...from);
        context.lineTo(this.places[2 * item] ?? 0, this.places[2 * item + 1] ?? 0);
      }
      context.stroke();
    });
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
    if (scene.query !== null) around(...this.onScreen(scene.query, scene, view), scene.inks.accent, 3);
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
