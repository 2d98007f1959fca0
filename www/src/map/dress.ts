// The mark and the opacity of every point, and the names of classes on the map.

import type { Collection } from "../collection.js";
import { sharedLevel } from "../kinship.js";
import type { Points } from "./geometry.js";
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

export function dress(collection: Collection, tree: ClassTree, { points, level, query, chosen }: Shown): Dress {
  const count = points.length / 2;
  const markOf = new Uint16Array(count);
  if (level === 0) {
    const own = collection.labels(query ?? 0);
    for (let item = 0; item < count; item++) markOf[item] = sharedLevel(own, collection.labels(item));
  } else {
    for (let item = 0; item < count; item++) markOf[item] = tree.classOf(item, level)?.place ?? 0;
  }
  const faded = new Uint8Array(count);
  if (chosen) {
    faded.fill(1);
    for (const item of chosen) faded[item] = 0;
  }
  const nodes = tree.levels[Math.max(1, level) - 1] ?? [];
  const labelled = nodes.length <= MOST_LABELS ? nodes : (tree.levels[0] ?? []);
  const labels = labelled
    .filter(({ items }) => items.length > 0)
    .toSorted((a, b) => b.items.length - a.items.length)
    .map((node) => ({
      text: node.name,
      at: middle(node.items, points),
      mark: level === node.level ? node.place : -1,
    }));
  return { markOf, faded, labels };
}

/** The median of the points of items in both directions: far-off items do not move it. */
function middle(items: readonly number[], points: Points): [number, number] {
  const median = (offset: number) => {
    const values = items.map((item) => points[2 * item + offset] ?? 0).sort((a, b) => a - b);
    return values[Math.floor(values.length / 2)] ?? 0;
  };
  return [median(0), median(1)];
}
