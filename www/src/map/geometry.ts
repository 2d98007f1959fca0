// Where the points of a map lie on the screen. All functions are pure.

/** x, y of every point: [N, 2]. */
export type Points = Float32Array;

/** A view of a map: which part of it the screen shows. */
export interface Viewport {
  /** The size of the drawing in CSS pixels. */
  readonly width: number;
  readonly height: number;
  /** 1 shows the whole map. */
  readonly zoom: number;
  /** The point of the map in the middle of the screen. In a disk it is moved to the centre, which keeps distances. */
  readonly centre: readonly [number, number];
}

/** What a map looks like on the screen. */
export interface Space {
  /** The CSS pixels of a unit of the map: of the plane, or of the radius of the disk. */
  scale(view: Viewport): number;
  /** Writes the places of all points on the screen into `out`, in CSS pixels. */
  project(points: Points, view: Viewport, out: Float32Array): void;
  /** The point of the map at a place on the screen. */
  locate(x: number, y: number, view: Viewport): [number, number];
  /** The view in which the point of the map lies at a place on the screen. */
  moved(point: readonly [number, number], x: number, y: number, view: Viewport): Viewport;
}

export const MIN_ZOOM = 0.8;
export const MAX_ZOOM = 400;
/** The share of the shorter side that a map fills at zoom 1. */
const FILL = 0.92;

const clamp = (value: number, low: number, high: number) => Math.max(low, Math.min(high, value));

// --- The plane ---------------------------------------------------------------------------------

/** The middle of the points, and half the longer side of the box around them. */
export function bounds(points: Points): { centre: [number, number]; radius: number } {
  let [left, right, bottom, top] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let at = 0; at < points.length; at += 2) {
    const x = points[at] ?? 0;
    const y = points[at + 1] ?? 0;
    left = Math.min(left, x);
    right = Math.max(right, x);
    bottom = Math.min(bottom, y);
    top = Math.max(top, y);
  }
  if (left > right) return { centre: [0, 0], radius: 1 };
  const radius = Math.max(right - left, top - bottom) / 2;
  return { centre: [(left + right) / 2, (bottom + top) / 2], radius: radius > 0 ? radius : 1 };
}

/** The plane, of which the whole map is a square with this half side. */
export function plane(radius: number): Space {
  const scale = ({ width, height, zoom }: Viewport) => (Math.min(width, height) / 2 / radius) * FILL * zoom;
  return {
    scale,
    project(points, view, out) {
      const s = scale(view);
      const [cx, cy] = view.centre;
      const [mx, my] = [view.width / 2, view.height / 2];
      for (let at = 0; at < points.length; at += 2) {
        out[at] = mx + ((points[at] ?? 0) - cx) * s;
        out[at + 1] = my - ((points[at + 1] ?? 0) - cy) * s;
      }
    },
    locate(x, y, view) {
      const s = scale(view);
      return [view.centre[0] + (x - view.width / 2) / s, view.centre[1] - (y - view.height / 2) / s];
    },
    moved([px, py], x, y, view) {
      const s = scale(view);
      return { ...view, centre: [px - (x - view.width / 2) / s, py + (y - view.height / 2) / s] };
    },
  };
}

// --- The Poincaré disk -------------------------------------------------------------------------

type Complex = readonly [number, number];

/** The Möbius addition a ⊕ b = (a + b)/(1 + āb), which moves the disk so that 0 comes to a. */
export function mobius([a, b]: Complex, [c, d]: Complex): [number, number] {
  const [re, im] = [1 + a * c + b * d, a * d - b * c];
  const square = re * re + im * im;
  const [x, y] = [a + c, b + d];
  return [(x * re + y * im) / square, (y * re - x * im) / square];
}

/** The centre may come this close to the rim: the numbers of a map have seven digits. */
const RIM = 0.9995;

function inside([x, y]: Complex): [number, number] {
  const shorten = Math.min(1, RIM / Math.hypot(x, y));
  return [x * shorten, y * shorten];
}

export const diskRadius = ({ width, height, zoom }: Viewport) => (Math.min(width, height) / 2) * FILL * zoom;

/** The hyperbolic plane as the Poincaré disk of radius 1. */
export const disk: Space = {
  scale: diskRadius,
  project(points, view, out) {
    const r = diskRadius(view);
    const [a, b] = [-view.centre[0], -view.centre[1]];
    const [mx, my] = [view.width / 2, view.height / 2];
    for (let at = 0; at < points.length; at += 2) {
      const c = points[at] ?? 0;
      const d = points[at + 1] ?? 0;
      const re = 1 + a * c + b * d;
      const im = a * d - b * c;
      const square = re * re + im * im;
      out[at] = mx + (((a + c) * re + (b + d) * im) / square) * r;
      out[at + 1] = my - (((b + d) * re - (a + c) * im) / square) * r;
    }
  },
  locate(x, y, view) {
    const r = diskRadius(view);
    return mobius(view.centre, inside([(x - view.width / 2) / r, (view.height / 2 - y) / r]));
  },
  moved(point, x, y, view) {
    // The translation that takes `point` to the place w: z ↦ w ⊕ … along the geodesic through both. Its centre is
    // found by moving the point to 0 and 0 to −w, as seen from the point.
    const r = diskRadius(view);
    const w = inside([(x - view.width / 2) / r, (view.height / 2 - y) / r]);
    const target = inside(point);
    // The centre c satisfies (−c) ⊕ p = w. In complex numbers (p − c)/(1 − c̄p) = w, so c + (−wp) c̄ = p − w.
    const [pr, pi] = target;
    const [wr, wi] = w;
    const [kr, ki] = [-(wr * pr - wi * pi), -(wr * pi + wi * pr)];
    const [er, ei] = [pr - wr, pi - wi];
    // c + k c̄ = e has the solution (e − k ē)/(1 − |k|²).
    const below = 1 - (kr * kr + ki * ki);
    const centre = inside([(er - (kr * er + ki * ei)) / below, (ei - (ki * er - kr * ei)) / below]);
    return { ...view, centre };
  },
};

/** The hyperbolic distance of two points of the disk, for curvature −1. */
export const hyperbolicDistance = (x: Complex, y: Complex): number =>
  2 * Math.atanh(Math.min(1 - 1e-12, Math.hypot(...mobius([-x[0], -x[1]], y))));

/**
 * The geodesic between two points of the disk: a part of the circle through both that meets the rim at right
 * angles. Null where it is a straight line.
 */
export function geodesic(
  [a, b]: Complex,
  [c, d]: Complex,
): { x: number; y: number; radius: number; from: number; to: number; anticlockwise: boolean } | null {
  const cross = a * d - b * c;
  if (Math.abs(cross) < 1e-6) return null;
  const [p, q] = [(1 + a * a + b * b) / 2, (1 + c * c + d * d) / 2];
  const [x, y] = [(p * d - q * b) / cross, (q * a - p * c) / cross];
  const radius = Math.sqrt(Math.max(0, x * x + y * y - 1));
  const [from, to] = [Math.atan2(b - y, a - x), Math.atan2(d - y, c - x)];
  const turn = (to - from + 4 * Math.PI) % (2 * Math.PI);
  return { x, y, radius, from, to, anticlockwise: turn > Math.PI };
}

// --- Views -------------------------------------------------------------------------------------

/** The view zoomed by a factor about a place on the screen. */
export function zoomed(space: Space, view: Viewport, factor: number, x: number, y: number): Viewport {
  const point = space.locate(x, y, view);
  return space.moved(point, x, y, { ...view, zoom: clamp(view.zoom * factor, MIN_ZOOM, MAX_ZOOM) });
}

/** Whether a place lies inside a polygon of places, by the number of sides that a ray crosses. */
export function isInside(x: number, y: number, polygon: readonly (readonly [number, number])[]): boolean {
  let inside = false;
  for (let at = 0, before = polygon.length - 1; at < polygon.length; before = at++) {
    const [ax, ay] = polygon[at] ?? [0, 0];
    const [bx, by] = polygon[before] ?? [0, 0];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}
