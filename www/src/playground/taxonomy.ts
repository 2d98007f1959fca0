// A small taxonomy as a list of its classes.
//
// The classes of the finest level stand in a row, like the leaves of a drawn tree. Between two
// neighbours stands their shared level. These numbers are the whole tree: two classes share the
// smallest number between them.

import { ATTRIBUTES, type Look } from "./creature.js";

export const MAX_LEVELS = 4;
export const MAX_CLASSES = 30;
/** The longest name, in characters. A longer one is cut. */
export const LONGEST_NAME = 24;

export interface Taxonomy {
  /** The names of the levels, coarse to fine. Their number is L. */
  readonly levels: readonly string[];
  /** For each level, the attribute of a creature's look that tells its nodes apart. It increases. */
  readonly attributes: readonly number[];
  /** The classes of the finest level, by how their creatures look. */
  readonly classes: readonly Look[];
  /** For each class, the names that a reader has given to its nodes, coarse to fine. Empty where there is none. */
  readonly names: readonly (readonly string[])[];
  /** The shared level, 0 … L − 1, of each class and the next. */
  readonly between: readonly number[];
}

/** A node of the tree: the classes `first` … `last` share the level `level`. Level 0 is the root. */
export interface Node {
  readonly level: number;
  readonly first: number;
  readonly last: number;
}

/** The usual names of L levels. */
export const usualNames = (depth: number): string[] =>
  depth === 1
    ? ["species"]
    : depth === 2
      ? ["family", "species"]
      : ["group", "family", "species", "variety"].slice(0, depth);

/** The taxonomy with these shared levels of neighbours, and the creatures that its shape gives. */
export function taxonomy(levels: readonly string[], between: readonly number[]): Taxonomy {
  const classes = usualLooks(levels.length, between);
  const names = classes.map(() => levels.map(() => ""));
  return { levels, attributes: levels.map((_, index) => index), between, classes, names };
}

/** How the classes of a tree look when nothing else is said: each level sets one attribute. */
export function usualLooks(depth: number, between: readonly number[]): Look[] {
  const path: [number, number, number, number] = [0, 0, 0, 0];
  const looks: Look[] = [[...path]];
  for (const shared of between) {
    path[shared] = (path[shared] ?? 0) + 1;
    path.fill(0, shared + 1, depth);
    looks.push([...path]);
  }
  return looks;
}

/** The shared level, 0 … L, of two classes. */
export function sharedLevel({ levels, between }: Taxonomy, a: number, b: number): number {
  let shared = levels.length;
  for (let at = Math.min(a, b); at < Math.max(a, b); at++) shared = Math.min(shared, between[at] ?? 0);
  return shared;
}

/** The node of `level` that holds a class. */
export function nodeOf({ between, classes }: Taxonomy, level: number, classIndex: number): Node {
  let [first, last] = [classIndex, classIndex];
  while (first > 0 && (between[first - 1] ?? 0) >= level) first--;
  while (last < classes.length - 1 && (between[last] ?? 0) >= level) last++;
  return { level, first, last };
}

/** The children of a node, in order. A node of the finest level has none. */
export function children(tree: Taxonomy, node: Node): Node[] {
  if (node.level === tree.levels.length) return [];
  const found: Node[] = [];
  for (let at = node.first; at <= node.last; at = (found.at(-1)?.last ?? at) + 1)
    found.push(nodeOf(tree, node.level + 1, at));
  return found;
}

/** The name that a reader has given to a node; empty if there is none. */
export const givenName = ({ names }: Taxonomy, { level, first }: Node): string => names[first]?.[level - 1] ?? "";

/** Gives a node a name. An empty one takes its name away. */
export function renameNode(tree: Taxonomy, { level, first, last }: Node, name: string): Taxonomy {
  const inside = (index: number) => index >= first && index <= last;
  const given = name.trim().slice(0, LONGEST_NAME);
  return { ...tree, names: tree.names.map((names, index) => (inside(index) ? names.with(level - 1, given) : names)) };
}

/** The name of a node: the one it was given, or one of the attributes of its level and the coarser ones, “round beetle”. */
export function nodeName(tree: Taxonomy, node: Node): string {
  const { attributes, classes } = tree;
  const { level, first, last } = node;
  const given = givenName(tree, node);
  if (given) return given;
  const used = level === 0 ? -1 : (attributes[level - 1] ?? 0);
  const looks = classes.slice(first, last + 1);
  const words = ATTRIBUTES.map((names, at) => {
    const value = looks[0]?.[at] ?? 0;
    if (at > used || looks.some((look) => look[at] !== value)) return "";
    const round = Math.floor(value / names.length);
    return `${names[value % names.length] ?? ""}${round > 0 ? ` ${round + 1}` : ""}`;
  });
  return words.filter(Boolean).reverse().join(" ") || (level === 0 ? "all" : "creatures");
}

/** The name of a class of the finest level. */
export const className = (tree: Taxonomy, index: number): string =>
  nodeName(tree, { level: tree.levels.length, first: index, last: index });

/** Adds a class below a node, after the classes that it has. The new class is at `node.last + 1`. */
export function addClass(tree: Taxonomy, node: Node): Taxonomy {
  const at = tree.attributes[node.level] ?? 0;
  const relative = tree.classes[node.last] ?? [0, 0, 0, 0];
  const same = tree.classes.filter((look) => look.slice(0, at).every((value, index) => value === relative[index]));
  let value = 0;
  while (same.some((look) => look[at] === value)) value++;
  const look = relative.map((of, index) => (index < at ? of : index === at ? value : 0));
  return {
    ...tree,
    between: tree.between.toSpliced(node.last, 0, node.level),
    names: tree.names.toSpliced(
      node.last + 1,
      0,
      tree.levels.map((_, index) => (index < node.level ? (tree.names[node.last]?.[index] ?? "") : "")),
    ),
    classes: tree.classes.toSpliced(node.last + 1, 0, [look[0] ?? 0, look[1] ?? 0, look[2] ?? 0, look[3] ?? 0]),
  };
}

/** Removes the classes of a node. */
export function removeNode(tree: Taxonomy, { first, last }: Node): Taxonomy {
  const start = Math.max(0, first - 1);
  const gap = tree.between.slice(start, last + 1);
  const inside = first > 0 && last < tree.classes.length - 1;
  return {
    ...tree,
    classes: tree.classes.toSpliced(first, last - first + 1),
    names: tree.names.toSpliced(first, last - first + 1),
    between: tree.between.toSpliced(start, gap.length, ...(inside ? [Math.min(...gap)] : [])),
  };
}

/**
 * Removes a level, 1 … L. Without the finest level its classes merge with their siblings. Returns the
 * tree and, for each old class, its new place.
 */
export function removeLevel(tree: Taxonomy, level: number): { tree: Taxonomy; moved: number[] } {
  const depth = tree.levels.length;
  const moved: number[] = [];
  const classes: Look[] = [];
  const names: string[][] = [];
  const between: number[] = [];
  const without = <Value>(list: readonly Value[]) => list.toSpliced(level - 1, 1);
  tree.classes.forEach((look, index) => {
    const shared = tree.between[index - 1];
    if (shared === undefined || level < depth || shared < depth - 1) {
      if (shared !== undefined) between.push(shared >= level ? shared - 1 : shared);
      classes.push(look);
      names.push(without(tree.names[index] ?? []));
    }
    moved.push(classes.length - 1);
  });
  const attributes = without(tree.attributes);
  return { tree: { levels: without(tree.levels), attributes, classes, names, between }, moved };
}

/** Whether one more level fits. */
export const canAddLevel = (tree: Taxonomy): boolean =>
  tree.levels.length < MAX_LEVELS &&
  2 * tree.classes.length <= MAX_CLASSES &&
  (tree.attributes.at(-1) ?? 0) < ATTRIBUTES.length - 1;

/** Adds a finest level: every class becomes two. The class i becomes the classes 2 i and 2 i + 1. */
export function addLevel(tree: Taxonomy): Taxonomy {
  const depth = tree.levels.length;
  const attribute = (tree.attributes.at(-1) ?? 0) + 1;
  const name = ["variety", "strain"].find((name) => !tree.levels.includes(name)) ?? `level ${depth + 1}`;
  return {
    levels: [...tree.levels, name],
    attributes: [...tree.attributes, attribute],
    classes: tree.classes.flatMap((look) => {
      const second: [number, number, number, number] = [...look];
      second[attribute] = (second[attribute] ?? 0) + 1;
      return [look, second];
    }),
    names: tree.names.flatMap((names) => [
      [...names, ""],
      [...names, ""],
    ]),
    between: tree.classes.flatMap((_, index) => (index === 0 ? [depth] : [tree.between[index - 1] ?? 0, depth])),
  };
}
