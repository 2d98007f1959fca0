import type { Manifest } from "./protocol.js";

/** The class id of a label that is not known. Unknown labels are the finest of an item. */
const UNKNOWN = 0xffffffff;

/** The items of an open bundle with their names: gallery first, then stored queries. */
export class Collection {
  readonly levels: readonly string[];
  readonly depth: number;
  readonly count: number;

  constructor(
    readonly manifest: Manifest,
    private readonly ids: Uint32Array,
    /** The file names of own pictures. */
    private readonly files: readonly string[] = [],
  ) {
    this.levels = manifest.taxonomy.levels;
    this.depth = this.levels.length;
    this.count = manifest.gallery.count + manifest.queries.count;
  }

  /** The class ids of an item, coarse to fine, as far as they are known. */
  labels(item: number): Uint32Array {
    const first = item * this.depth;
    let known = this.depth;
    while (known > 0 && this.ids[first + known - 1] === UNKNOWN) known--;
    return this.ids.subarray(first, first + known);
  }

  className(level: number, id: number): string {
    return this.manifest.taxonomy.classes[level - 1]?.[id] ?? "?";
  }

  /** The names of an item's classes, coarse to fine. */
  path(item: number): string[] {
    return Array.from(this.labels(item), (id, index) => this.className(index + 1, id));
  }

  /** The name of an item's finest class, with what is not known of it, or of its file where it has no labels. */
  name(item: number): string {
    const path = this.path(item);
    const unknown = path.length > 0 ? this.levels[path.length] : undefined;
    const name = path.at(-1) ?? this.files[item] ?? "?";
    return unknown === undefined ? name : `${name} (${unknown} unknown)`;
  }

  /** Whether the name of a class or file of the item contains `words`, which are in lower case. */
  matches(item: number, words: string): boolean {
    const names = [...this.path(item), this.files[item] ?? ""];
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
