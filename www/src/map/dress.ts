// The mark and the opacity of every point, and the names of classes on the map.

import type { Points } from "./geometry.js";
import { Items, type Plotted } from "./plotted.js";
import type { Label } from "./scene.js";
import type { ClassTree } from "./tree.js";

/** The most class names on the map. */
const MOST_LABELS = 60;

export interface Dress {
  /** The number of each point's mark. */
  markOf: Uint16Array;
  /** 1 for every point that does not belong to the choice. */
  faded: Uint8Array;
  labels: Label[];
}

export const UNDRESSED: Dress = { markOf: new Uint16Array(0), faded: new Uint8Array(0), labels: [] };

interface Shown {
  points: Points;
  /** The level of the colours; 0 for kinship to the query. */
  level: number;
  query: number | null;
  chosen: readonly number[] | null;
}

export function dress(plotted: Plotted, tree: ClassTree, { points, level, query, chosen }: Shown): Dress {
  const { count } = plotted;
  const markOf = new Uint16Array(count);
  if (level === 0) {
    for (let point = 0; point < count; point++) markOf[point] = plotted.shared(point, query ?? 0);
  } else {
    for (let point = 0; point < count; point++) markOf[point] = plotted.classOf(point, level)?.place ?? 0;
  }
  const faded = new Uint8Array(count);
  if (chosen) {
    faded.fill(1);
    for (const item of chosen) {
      const point = plotted.pointOf(item);
      if (point !== null) faded[point] = 0;
    }
  }
  const nodes = tree.levels[Math.max(1, level) - 1] ?? [];
  const labelled = nodes.length <= MOST_LABELS ? nodes : (tree.levels[0] ?? []);
  const labels = labelled
    .toSorted((a, b) => b.items.length - a.items.length)
    .map((node) => ({ node, within: plotted.pointsOf(node) }))
    .filter(({ within }) => within.length > 0)
    .map(({ node, within }) => ({
      text: node.name,
      at: middle(within, points),
      // Among means, a mark would look like one more of them.
      mark: level === node.level && plotted instanceof Items ? node.place : -1,
    }));
  return { markOf, faded, labels };
}

/** The median of points in both directions: far-off ones do not move it. */
function middle(within: readonly number[], points: Points): [number, number] {
  const median = (offset: number) => {
    const values = within.map((point) => points[2 * point + offset] ?? 0).sort((a, b) => a - b);
    return values[Math.floor(values.length / 2)] ?? 0;
  };
  return [median(0), median(1)];
}
