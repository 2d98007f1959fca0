// What a map shows, however it is drawn.

import { diskRadius, geodesic, mobius, type Points, type Space, type Viewport } from "./geometry.js";
import type { Mark } from "./marks.js";

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
  /** The points of the query's nearest items, nearest first. */
  nearest: readonly number[];
  focus: number | null;
  labels: readonly Label[];
  lasso: readonly (readonly [number, number])[];
  /** Whether points are items, which can be drawn as pictures. */
  hasPictures: boolean;
  /** The picture of an item: its sheet and the place on it; null while it loads. */
  picture: (item: number) => { image: HTMLImageElement; x: number; y: number; side: number } | null;
  inks: Inks;
  font: string;
}

/** Up to this number of items on the screen, each is drawn as a picture. */
export const PICTURES = 90;
export const PICTURE_SIDE = 44;
/** The opacity of faded marks and pictures. */
export const FADED = 0.22;
export const FADED_PICTURE = 1.5 * FADED;

/** Where the points of a scene lie on the screen. */
export interface Seen {
  /** The place of each point in CSS pixels. */
  places: Float32Array;
  /** The items on the screen. */
  visible: readonly number[];
  /** Whether these are drawn as pictures. */
  pictures: boolean;
}

/** The radius of a point in CSS pixels: smaller in large galleries, growing with the zoom. */
export const pointRadius = (count: number, zoom: number): number =>
  Math.min(7, Math.max(1.8, 5.5 / Math.max(1, count / 400) ** 0.28) * Math.max(1, zoom) ** 0.25);

/** A line below the items: straight, or a part of a circle, in CSS pixels. */
export type Stroke = { colour: string; width: number } & (
  | { from: readonly [number, number]; to: readonly [number, number] }
  | { x: number; y: number; radius: number; start: number; end: number; anticlockwise: boolean }
);

/** All lines below the items. */
export const strokes = (scene: Scene, view: Viewport, places: Float32Array): Stroke[] => [
  ...(scene.isDisk ? diskStrokes(scene, view) : []),
  ...links(scene, view, places),
];

/** The numbers of the rings that have one, which stand below the middle of the screen. */
export const RING_NUMBERS = [1, 2, 3];
/** The radius of the ring at a hyperbolic distance from the middle of the screen. */
export const ringRadius = (distance: number, view: Viewport): number => Math.tanh(distance / 2) * diskRadius(view);

/** The rim of the disk and rings at the hyperbolic distances 1, 2, … from the middle of the screen. */
function diskStrokes({ inks }: Scene, view: Viewport): Stroke[] {
  const [x, y] = [view.width / 2, view.height / 2];
  const circle = { x, y, start: 0, end: 2 * Math.PI, anticlockwise: false };
  return [
    ...[1, 2, 3, 4, 5, 6].map((distance) => ({
      ...circle,
      radius: ringRadius(distance, view),
      colour: inks.line,
      width: 1,
    })),
    { ...circle, radius: diskRadius(view), colour: inks.soft, width: 1.5 },
  ];
}

/** Lines from the query to its nearest items: straight ones in the plane, geodesics in the disk. */
function links(scene: Scene, view: Viewport, places: Float32Array): Stroke[] {
  const { query, nearest, markOf, points } = scene;
  if (query === null) return [];
  const from = onScreen(query, scene, view);
  const back: [number, number] = [-view.centre[0], -view.centre[1]];
  return nearest.map((item, rank) => {
    const colour = scene.marks[markOf[item] ?? 0]?.colour ?? scene.inks.ink;
    const width = Math.max(1, 2.4 - rank * 0.15);
    const to: [number, number] = [points[2 * item] ?? 0, points[2 * item + 1] ?? 0];
    const arc = scene.isDisk ? geodesic(mobius(back, query), mobius(back, to)) : null;
    if (!arc || arc.radius >= 1e4)
      return { colour, width, from, to: [places[2 * item] ?? 0, places[2 * item + 1] ?? 0] as const };
    const r = diskRadius(view);
    // The screen's y runs downwards, so angles change their sign.
    return {
      colour,
      width,
      x: view.width / 2 + arc.x * r,
      y: view.height / 2 - arc.y * r,
      radius: arc.radius * r,
      start: -arc.from,
      end: -arc.to,
      anticlockwise: !arc.anticlockwise,
    };
  });
}

/** The place of a point of the map on the screen. */
export function onScreen(point: readonly [number, number], scene: Scene, view: Viewport): [number, number] {
  const place = new Float32Array(2);
  scene.space.project(Float32Array.from(point), view, place);
  return [place[0] ?? 0, place[1] ?? 0];
}
