// Where the marks of a picture are and how they look. A picture is a square from −1.3 to 1.3, y upwards in the space
// and downwards on the screen.

import type { Space } from "../messages/training.js";

export type Point = readonly [x: number, y: number];

/** How the sphere is turned: about the vertical axis, then towards the reader, in radians. */
export interface Turn {
  yaw: number;
  pitch: number;
}

export interface Placed {
  x: number;
  y: number;
  /** Whether it is on the side of the sphere that faces away. */
  behind: boolean;
}

/** On the circle the creatures of a species stand behind one another, and held-out ones on a ring of their own. */
const ROW = 0.026;
const HELD_OUT_RING = 1.15;

/** Where a point of the space is in the picture. `number` counts the creatures of a species. */
export function place(
  space: Space,
  points: readonly number[],
  index: number,
  turn: Turn,
  mark: { number: number; heldOut: boolean } | null,
): Placed {
  if (space === "sphere") {
    return project([points[3 * index] ?? 0, points[3 * index + 1] ?? 0, points[3 * index + 2] ?? 0], turn);
  }
  const x = points[2 * index] ?? 0;
  const y = -(points[2 * index + 1] ?? 0);
  if (space === "disk" || !mark) return { x, y, behind: false };
  const radius = (mark.heldOut ? HELD_OUT_RING : 1) + ROW * mark.number;
  return { x: x * radius, y: y * radius, behind: false };
}

/** A point of the ball, seen from far away. */
export function project([x, y, z]: readonly [number, number, number], { yaw, pitch }: Turn): Placed {
  const across = x * Math.cos(yaw) + z * Math.sin(yaw);
  const deep = z * Math.cos(yaw) - x * Math.sin(yaw);
  const up = y * Math.cos(pitch) - deep * Math.sin(pitch);
  const near = deep * Math.cos(pitch) + y * Math.sin(pitch);
  return { x: across, y: -up, behind: near < -0.02 };
}

const SHAPES = ["circle", "square", "triangle", "diamond"] as const;
/** The names of the shapes that stand for the coarsest classes, in turn. */
export const shapeName = (group: number): string => SHAPES[group % SHAPES.length] ?? "circle";

/** The outline of a mark. The shapes have about the same area. */
export function outline(group: number, { x, y }: { x: number; y: number }, size: number): string {
  const at = (dx: number, dy: number) => `${(x + dx * size).toFixed(3)} ${(y + dy * size).toFixed(3)}`;
  switch (group % SHAPES.length) {
    case 0:
      return `M${at(-1, 0)}a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 ${-2 * size} 0`;
    case 1:
      return `M${at(-0.9, -0.9)}L${at(0.9, -0.9)} ${at(0.9, 0.9)} ${at(-0.9, 0.9)}Z`;
    case 2:
      return `M${at(0, -1.2)}L${at(1.15, 0.85)} ${at(-1.15, 0.85)}Z`;
    default:
      return `M${at(0, -1.3)}L${at(1.3, 0)} ${at(0, 1.3)} ${at(-1.3, 0)}Z`;
  }
}

/** The geodesic of the Poincaré disk from p to q: a circle at right angles to the rim, or a line through the centre. */
export function geodesic(p: Point, q: Point): string {
  const ends = `${q[0].toFixed(4)} ${q[1].toFixed(4)}`;
  const start = `M${p[0].toFixed(4)} ${p[1].toFixed(4)}`;
  // The centre c satisfies 2 c·p = 1 + |p|² and 2 c·q = 1 + |q|², and the radius is √(|c|² − 1).
  const cross = p[0] * q[1] - p[1] * q[0];
  if (Math.abs(cross) < 1e-4) return `${start}L${ends}`;
  const [a, b] = [(1 + p[0] ** 2 + p[1] ** 2) / 2, (1 + q[0] ** 2 + q[1] ** 2) / 2];
  const centre = [(a * q[1] - b * p[1]) / cross, (b * p[0] - a * q[0]) / cross] as const;
  const radius = Math.sqrt(Math.max(centre[0] ** 2 + centre[1] ** 2 - 1, 0));
  return `${start}A${radius.toFixed(4)} ${radius.toFixed(4)} 0 0 ${cross > 0 ? 0 : 1} ${ends}`;
}

/** Circles of latitude and longitude on the side of the sphere that faces the reader. */
export function graticule(turn: Turn): string {
  const lines: string[] = [];
  const draw = (at: (t: number) => readonly [number, number, number]) => {
    let pen = "M";
    for (let step = 0; step <= 48; step++) {
      const { x, y, behind } = project(at((step / 48) * 2 * Math.PI), turn);
      if (behind) pen = "M";
      else {
        lines.push(`${pen}${x.toFixed(3)} ${y.toFixed(3)}`);
        pen = "L";
      }
    }
  };
  for (let line = 0; line < 6; line++) {
    const angle = (line / 6) * Math.PI;
    draw((t) => [Math.sin(t) * Math.cos(angle), Math.cos(t), Math.sin(t) * Math.sin(angle)]);
  }
  for (const height of [-0.5, 0, 0.5]) {
    const radius = Math.sqrt(1 - height ** 2);
    draw((t) => [radius * Math.cos(t), height, radius * Math.sin(t)]);
  }
  return lines.join("");
}
