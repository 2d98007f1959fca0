import type { Reach } from "./elements/kinship-ring.js";
import { mayShare, sharedLevel } from "./kinship.js";
import type { Manifest } from "./protocol.js";

/** The level that two items share, and the finest that they may share. */
export interface Shared {
  shared: number;
  most: number;
}

/** What the nearest two of the label paths of two items share. */
function furthest(a: ArrayLike<number>[], b: ArrayLike<number>[], depth: number): Shared {
  const pairs = a.flatMap((own) => b.map((other) => ({ own, other })));
  return {
    shared: Math.max(0, ...pairs.map(({ own, other }) => sharedLevel(own, other))),
    most: Math.max(0, ...pairs.map(({ own, other }) => mayShare(own, other, depth))),
  };
}

/** The class id of a label that is not known. Unknown labels are the finest of an item. */
const UNKNOWN = 0xffffffff;

/** The items of an open bundle with their names: gallery first, then stored queries. */
export class Collection {
  readonly levels: readonly string[];
  readonly depth: number;
  /** The levels of its classes. With a matrix of relevance the levels are its grades, and there is one level of classes. */
  readonly classLevels: readonly string[];
  readonly count: number;
  /** The levels of its kinship rings: evenly in a tree, and by their value with a matrix of relevance. */
  readonly reach: Reach;
  /** The values of a matrix of relevance, in increasing order; none in a tree. */
  readonly grades: readonly number[];

  constructor(
    readonly manifest: Manifest,
    /** [count, L] class ids. */
    readonly ids: Uint32Array,
    /** The file names of own pictures. */
    private readonly files: readonly string[] = [],
  ) {
    this.levels = manifest.taxonomy.levels;
    this.depth = this.levels.length;
    this.count = manifest.gallery.count + manifest.queries.count;
    const kinship = manifest.kinship?.kinship;
    const values = kinship && "matrix" in kinship ? kinship.matrix.flat() : [];
    this.grades = [...new Set(values)].filter((value) => value > 0).sort((a, b) => a - b);
    const largest = this.grades.at(-1);
    this.classLevels = largest === undefined ? this.levels : ["class"];
    this.reach = largest === undefined ? this.depth : this.grades.map((value) => value / largest);
  }

  /** The number of pictures that a query ranks. */
  get pictures(): number {
    return this.manifest.gallery.count;
  }

  /** The class ids of an item at each level, coarse to fine, as far as they are known. In place of a tree, all are its class. */
  labels(item: number): Uint32Array {
    const first = item * this.depth;
    let known = this.depth;
    while (known > 0 && this.ids[first + known - 1] === UNKNOWN) known--;
    return this.ids.subarray(first, first + known);
  }

  className(level: number, id: number): string {
    return this.manifest.taxonomy.classes[level - 1]?.[id] ?? "?";
  }

  /** The names of an item's classes, coarse to fine; of its first label path, if it has several. */
  path(item: number): string[] {
    return this.paths(item)[0] ?? [];
  }

  /** The names of the classes of each label path. In place of a tree, an item has only its class. */
  paths(item: number): string[][] {
    const { kinship } = this.manifest;
    if (!kinship) return [this.names(this.labels(item))];
    if ("matrix" in kinship.kinship) return [this.names(this.labels(item)).slice(0, 1)];
    // A class that is as deep as it goes has copies of itself below.
    return this.idPaths(item).map((path) => this.names(path).filter((name, at, all) => name !== all[at - 1]));
  }

  /** The classes above the finest class of an item, such as “fruit › tomato”; of each label path, if it has several. */
  above(item: number): string {
    const paths = this.paths(item).map((path) => path.slice(0, -1).join(" › "));
    return [...new Set(paths)].filter((path) => path !== "").join(" · ");
  }

  /** The level that two items share, and the finest that they may share. */
  shared(a: number, b: number): Shared {
    const grade = this.grade(a, this.manifest.kinship?.kinds[b]);
    if (grade !== null) return { shared: grade, most: grade };
    return furthest(this.idPaths(a), this.idPaths(b), this.depth);
  }

  /** As `shared`, for an item and a class, by the ids of its line from the coarsest level. */
  sharedWithClass(item: number, line: ArrayLike<number>): Shared {
    const grade = this.grade(item, line[0]);
    if (grade !== null) return { shared: grade, most: grade };
    return furthest(this.idPaths(item), [line], this.depth);
  }

  private names(ids: ArrayLike<number>): string[] {
    return Array.from(ids, (id, index) => this.className(index + 1, id));
  }

  private idPaths(item: number): ArrayLike<number>[] {
    const { kinship } = this.manifest;
    const paths = kinship && "paths" in kinship.kinship ? kinship.kinship.paths[kinship.kinds[item] ?? 0] : undefined;
    return paths?.map((path) => path.filter((id) => id !== UNKNOWN)) ?? [this.labels(item)];
  }

  /** The grade of an item and a class by the matrix of relevance; null where there is none. */
  private grade(item: number, other: number | undefined): number | null {
    const { kinship } = this.manifest;
    if (!kinship || !("matrix" in kinship.kinship) || other === undefined) return null;
    const { matrix } = kinship.kinship;
    return this.grades.indexOf(matrix[kinship.kinds[item] ?? 0]?.[other] ?? 0) + 1;
  }

  /** The name of an item's finest class, with what is not known of it, or of its file where it has no labels. */
  name(item: number): string {
    const path = this.path(item);
    const unknown = path.length > 0 ? this.levels[this.labels(item).length] : undefined;
    const name = path.at(-1) ?? this.files[item] ?? "?";
    return unknown === undefined ? name : `${name} (${unknown} unknown)`;
  }

  /** Whether the name of a class or file of the item contains `words`, which are in lower case. */
  matches(item: number, words: string): boolean {
    const names = [...this.paths(item).flat(), this.files[item] ?? ""];
    return names.some((name) => name.toLocaleLowerCase().includes(words));
  }

  /** The classes of `level` below `parent`, sorted by name; at level 1 all classes. */
  children(level: number, parent: number | null): { id: number; name: string }[] {
    const names = this.manifest.taxonomy.classes[level - 1] ?? [];
    const parents = this.manifest.taxonomy.parents[level - 1] ?? [];
    return names
      .map((name, id) => ({ id, name }))
      .filter(({ id }) => level === 1 || parents[id] === parent)
      .sort((a, b) => a.name.localeCompare(b.name));
  }

  isStoredQuery(item: number): boolean {
    return item >= this.manifest.gallery.count;
  }

  /**
   * The items offered as queries: the stored queries, or the gallery if there are none. One item of every finest class
   * comes first, then a second of each, so that the first page shows many classes.
   */
  samples(): number[] {
    this.ordered ??= this.order();
    return this.ordered;
  }

  private ordered: number[] | null = null;

  private order(): number[] {
    const { gallery, queries } = this.manifest;
    const [first, count] = queries.count > 0 ? [gallery.count, queries.count] : [0, gallery.count];
    const seen = new Map<string, number>();
    const items = Array.from({ length: count }, (_, index) => {
      const item = first + index;
      const finest = this.path(item).join("/");
      const round = seen.get(finest) ?? 0;
      seen.set(finest, round + 1);
      return { item, round };
    });
    return items.sort((a, b) => a.round - b.round || a.item - b.item).map(({ item }) => item);
  }
}
