// What the points of a map stand for: the items of the gallery, or the means of its finest classes.

import type { Collection } from "../collection.js";
import type { MapMeans } from "../messages/engine.js";
import { lineOf, type ClassNode, type ClassTree } from "./tree.js";

export interface Plotted {
  readonly count: number;
  /** The class of a point at a level. */
  classOf(point: number, level: number): ClassNode | null;
  /** The level that a point shares with an item. */
  shared(point: number, item: number): number;
  /** The items that a point stands for. */
  items(point: number): readonly number[];
  /** The point that stands for an item; null if there is none. */
  pointOf(item: number): number | null;
  /** The points inside a class. */
  pointsOf(node: ClassNode): readonly number[];
}

/** One point for each item of the gallery. */
export class Items implements Plotted {
  readonly count: number;

  constructor(
    private readonly collection: Collection,
    private readonly tree: ClassTree,
  ) {
    this.count = collection.manifest.gallery.count;
  }

  classOf(point: number, level: number): ClassNode | null {
    return this.tree.classOf(point, level);
  }

  shared(point: number, item: number): number {
    return this.collection.shared(item, point).shared;
  }

  items(point: number): readonly number[] {
    return [point];
  }

  pointOf(item: number): number | null {
    return item < this.count ? item : null;
  }

  pointsOf(node: ClassNode): readonly number[] {
    return node.items;
  }
}

/** One point for each finest class with an item in the gallery. */
export class ClassMeans implements Plotted {
  /** The class of each point, from the coarsest level to the finest. */
  private readonly lines: readonly (readonly ClassNode[])[];
  private readonly points = new Map<ClassNode, number[]>();

  constructor(
    private readonly tree: ClassTree,
    { classes }: MapMeans,
  ) {
    const finest = tree.collection.classLevels.length;
    this.lines = classes.map((id) => {
      const node = tree.node(finest, id);
      return node ? lineOf(node) : [];
    });
    this.lines.forEach((line, point) => {
      for (const node of line) {
        const points = this.points.get(node);
        if (points) points.push(point);
        else this.points.set(node, [point]);
      }
    });
  }

  get count(): number {
    return this.lines.length;
  }

  /** The class that a point stands for; null if the gallery has no such class. */
  node(point: number): ClassNode | null {
    return this.lines[point]?.at(-1) ?? null;
  }

  classOf(point: number, level: number): ClassNode | null {
    return this.lines[point]?.[level - 1] ?? null;
  }

  shared(point: number, item: number): number {
    const line = (this.lines[point] ?? []).map(({ id }) => id);
    return this.tree.collection.sharedWithClass(item, line).shared;
  }

  items(point: number): readonly number[] {
    return this.node(point)?.items ?? [];
  }

  pointOf(item: number): number | null {
    const node = this.tree.classOf(item, this.tree.collection.classLevels.length);
    return (node && this.points.get(node)?.[0]) ?? null;
  }

  pointsOf(node: ClassNode): readonly number[] {
    return this.points.get(node) ?? [];
  }
}
