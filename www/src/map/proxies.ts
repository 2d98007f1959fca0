import type { MapProxies } from "../messages/engine.js";
import type { GallerySource } from "./gallery-source.js";
import type { Points } from "./geometry.js";

/** Stands for no proxy in the file of ancestors. */
const NONE = 0xffffffff;

/** The proxies that HIER has learned as ancestors of the items, on a map. */
export class Proxies {
  /** For each proxy the items that have it as an ancestor. */
  readonly descendants: readonly (readonly number[])[];
  /** Pairs of proxies that follow each other on the line of an item: child and parent. */
  readonly links: readonly (readonly [number, number])[];

  constructor(
    readonly points: Points,
    private readonly nearestItems: Uint32Array,
    private readonly perProxy: number,
    private readonly ancestors: Uint32Array,
    private readonly depth: number,
  ) {
    const descendants: number[][] = Array.from({ length: this.count }, () => []);
    const links = new Map<string, [number, number]>();
    for (let item = 0; item < ancestors.length / depth; item++) {
      const line = this.line(item);
      for (const proxy of new Set(line)) descendants[proxy]?.push(item);
      line.forEach((proxy, at) => {
        const parent = line[at + 1];
        if (parent !== undefined) links.set(`${proxy}-${parent}`, [proxy, parent]);
      });
    }
    this.descendants = descendants;
    this.links = [...links.values()];
  }

  static async load(source: GallerySource, files: MapProxies): Promise<Proxies> {
    const [points, nearest, ancestors] = await Promise.all([
      source.numbers(files.coordinates),
      source.wholeNumbers(files.nearest),
      source.wholeNumbers(files.ancestors),
    ]);
    return new Proxies(points, nearest, files.per_proxy, ancestors, source.collection.depth);
  }

  get count(): number {
    return this.points.length / 2;
  }

  get items(): number {
    return this.ancestors.length / this.depth;
  }

  /** The gallery items nearest to a proxy, nearest first. */
  nearest(proxy: number): number[] {
    return [...this.nearestItems.subarray(proxy * this.perProxy, (proxy + 1) * this.perProxy)];
  }

  /** The ancestor of an item at a level, 1 … L; null for none. */
  ancestor(item: number, level: number): number | null {
    const proxy = this.ancestors[item * this.depth + level - 1] ?? NONE;
    return proxy === NONE ? null : proxy;
  }

  /** The ancestors of an item from the finest level to the coarsest, each once in a row. */
  line(item: number): number[] {
    const line: number[] = [];
    for (let level = this.depth; level > 0; level--) {
      const proxy = this.ancestor(item, level);
      if (proxy !== null && proxy !== line.at(-1)) line.push(proxy);
    }
    return line;
  }

  /** The proxies, those with most descendants first. */
  byDescendants(): number[] {
    const size = (proxy: number) => this.descendants[proxy]?.length ?? 0;
    return Array.from({ length: this.count }, (_, proxy) => proxy).sort((a, b) => size(b) - size(a) || a - b);
  }
}
