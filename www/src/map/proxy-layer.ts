// Draws proxies and lines of ancestors above a map, on a canvas of its own.

import { diskRadius, geodesic, mobius, type Points, type Space, type Viewport } from "./geometry.js";
import type { Inks } from "./scene.js";
import type { Proxies } from "./proxies.js";

export interface ProxyScene {
  proxies: Proxies;
  /** The points of the items. */
  points: Points;
  space: Space;
  isDisk: boolean;
  /** The proxy that the reader has chosen. */
  chosen: number | null;
  /** The item whose line is drawn: the one in focus, else the query. */
  item: number | null;
  inks: Inks;
}

/** More items than these do not all get a line when none is chosen. */
const MOST_LINES = 4000;
const RADIUS = 5;
/** A circle of a larger radius, against that of the disk, is drawn as a straight line. */
const STRAIGHT = 1e4;

type Place = readonly [number, number];

export class ProxyLayer {
  /** The places of the proxies on the screen. */
  private screen = new Float32Array(0);

  constructor(private readonly canvas: HTMLCanvasElement) {}

  draw(scene: ProxyScene, view: Viewport, scale: number): void {
    const { canvas } = this;
    const context = canvas.getContext("2d");
    if (!context) return;
    canvas.width = Math.round(view.width * scale);
    canvas.height = Math.round(view.height * scale);
    context.scale(scale, scale);
    const { proxies, points, chosen, item, inks } = scene;
    this.screen = new Float32Array(proxies.points.length);
    scene.space.project(proxies.points, view, this.screen);
    const items = new Float32Array(points.length);
    scene.space.project(points, view, items);
    const line = new Lines(context, scene, view);
    const proxy = (at: number): Ends => ends(proxies.points, this.screen, at);
    const point = (at: number): Ends => ends(points, items, at);

    if (chosen === null) {
      line.start(inks.soft, 0.6, 0.22);
      const step = Math.ceil(proxies.items / MOST_LINES);
      for (let at = 0; at < proxies.items; at += step) {
        const [first] = proxies.line(at);
        if (first !== undefined) line.add(point(at), proxy(first));
      }
      line.stroke();
      line.start(inks.soft, 1, 0.55);
      for (const [child, parent] of proxies.links) line.add(proxy(child), proxy(parent));
      line.stroke();
    } else {
      line.start(inks.accent, 1, 0.6);
      for (const at of proxies.descendants[chosen] ?? []) line.add(point(at), proxy(chosen));
      line.stroke();
    }
    if (item !== null && item < proxies.items) {
      const steps = [point(item), ...proxies.line(item).map(proxy)];
      line.start(inks.ink, 2, 1);
      steps.forEach((from, at) => {
        const to = steps[at + 1];
        if (to) line.add(from, to);
      });
      line.stroke();
    }
    for (let at = 0; at < proxies.count; at++) {
      const isUsed = (proxies.descendants[at]?.length ?? 0) > 0;
      this.mark(context, at, isUsed, at === chosen, inks);
    }
  }

  /** A proxy: a diamond, a hollow one where it is the ancestor of nothing. */
  private mark(context: CanvasRenderingContext2D, at: number, isUsed: boolean, isChosen: boolean, inks: Inks): void {
    const [x, y] = [this.screen[2 * at] ?? 0, this.screen[2 * at + 1] ?? 0];
    const r = isChosen ? 1.7 * RADIUS : isUsed ? RADIUS : 0.7 * RADIUS;
    context.beginPath();
    context.moveTo(x, y - r);
    context.lineTo(x + r, y);
    context.lineTo(x, y + r);
    context.lineTo(x - r, y);
    context.closePath();
    context.fillStyle = isUsed ? (isChosen ? inks.accent : inks.ink) : inks.paper;
    context.strokeStyle = isUsed ? inks.paper : inks.soft;
    context.lineWidth = 1.5;
    context.fill();
    context.stroke();
  }

  /** The proxy at a place on the screen. */
  at([x, y]: Place, within: number): number | null {
    let [best, distance] = [null as number | null, within];
    for (let proxy = 0; proxy < this.screen.length / 2; proxy++) {
      const d = Math.hypot((this.screen[2 * proxy] ?? 0) - x, (this.screen[2 * proxy + 1] ?? 0) - y);
      if (d < distance) [best, distance] = [proxy, d];
    }
    return best;
  }
}

/** A point on the map, and its place on the screen. */
interface Ends {
  map: Place;
  screen: Place;
}

const ends = (points: Points, screen: Float32Array, at: number): Ends => ({
  map: [points[2 * at] ?? 0, points[2 * at + 1] ?? 0],
  screen: [screen[2 * at] ?? 0, screen[2 * at + 1] ?? 0],
});

/** Many lines of one look: geodesics in the disk, straight in the plane. */
class Lines {
  private readonly back: [number, number];
  private readonly radius: number;

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly scene: ProxyScene,
    private readonly view: Viewport,
  ) {
    this.back = [-view.centre[0], -view.centre[1]];
    this.radius = diskRadius(view);
  }

  start(colour: string, width: number, opacity: number): void {
    this.context.beginPath();
    this.context.strokeStyle = colour;
    this.context.lineWidth = width;
    this.context.globalAlpha = opacity;
  }

  add(from: Ends, to: Ends): void {
    const { context, view, radius: r } = this;
    context.moveTo(...from.screen);
    const arc = this.scene.isDisk ? geodesic(mobius(this.back, from.map), mobius(this.back, to.map)) : null;
    if (arc && arc.radius < STRAIGHT) {
      const [x, y] = [view.width / 2 + arc.x * r, view.height / 2 - arc.y * r];
      // The screen's y runs downwards, so angles change their sign.
      context.arc(x, y, arc.radius * r, -arc.from, -arc.to, !arc.anticlockwise);
    } else context.lineTo(...to.screen);
  }

  stroke(): void {
    this.context.stroke();
    this.context.globalAlpha = 1;
  }
}
