import type { Collection } from "../collection.js";
import type { QueryScores } from "./gallery-source.js";

/** A class of the taxonomy with items in the gallery. */
export interface ClassNode {
  /** 1 … L. */
  readonly level: number;
  readonly id: number;
  readonly name: string;
  readonly parent: ClassNode | null;
  readonly children: ClassNode[];
  /** Its gallery items. */
  readonly items: number[];
  /** The items of its queries. */
  readonly queries: number[];
  /** Its number among the classes of its level, in the order of the tree. */
  place: number;
}

/** The classes of the gallery as a tree. */
export class ClassTree {
  readonly roots: readonly ClassNode[];
  /** The classes of each level, in the order of the tree. */
  readonly levels: readonly (readonly ClassNode[])[];
  private readonly known = new Map<string, ClassNode>();

  constructor(readonly collection: Collection) {
    const { classLevels, manifest } = collection;
    const roots: ClassNode[] = [];
    const hasQueries = manifest.queries.count > 0;
    for (let item = 0; item < collection.count; item++) {
      const isGallery = item < manifest.gallery.count;
      let parent: ClassNode | null = null;
      collection
        .labels(item)
        .slice(0, classLevels.length)
        .forEach((id, index) => {
          const level = index + 1;
          const key = `${level}:${id}`;
          let node = this.known.get(key);
          if (!node) {
            const name = collection.className(level, id);
            node = { level, id, name, parent, children: [], items: [], queries: [], place: 0 };
            this.known.set(key, node);
            (parent?.children ?? roots).push(node);
          }
          if (isGallery) node.items.push(item);
          if (isGallery !== hasQueries) node.queries.push(item);
          parent = node;
        });
    }
    const levels: ClassNode[][] = classLevels.map(() => []);
    const visit = (nodes: ClassNode[]) => {
      nodes.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
      for (const node of nodes) {
        const row = levels[node.level - 1];
        node.place = row?.push(node) ?? 0;
        node.place -= 1;
        visit(node.children);
      }
    };
    visit(roots);
    this.roots = roots;
    this.levels = levels;
  }

  node(level: number, id: number): ClassNode | null {
    return this.known.get(`${level}:${id}`) ?? null;
  }

  /** The class of an item at a level. */
  classOf(item: number, level: number): ClassNode | null {
    return this.node(level, this.collection.labels(item)[level - 1] ?? -1);
  }

  /** The names from the coarsest class down to this one. */
  path(node: ClassNode): string[] {
    return lineOf(node).map(({ name }) => name);
  }
}

/** A class below all classes above it, from the coarsest. */
export const lineOf = (node: ClassNode): ClassNode[] => [...(node.parent ? lineOf(node.parent) : []), node];

/** The mean H-AP of the queries of a class; null without scores. */
export const meanOfClass = (node: ClassNode, scores: QueryScores | null): number | null =>
  scores?.mean(node.queries, "h_ap") ?? null;

/** What is chosen: a class, or the items inside a lasso. */
export type Choice = { kind: "class"; node: ClassNode } | { kind: "lasso"; items: readonly number[] };

export const chosenItems = (choice: Choice): readonly number[] =>
  choice.kind === "class" ? choice.node.items : choice.items;
