import type { Collection } from "../collection.js";
import { failure } from "../failure.js";
import type { EncoderEntry } from "../protocol.js";
import type { Ranked } from "../messages/engine.js";
import type { OpenBundle, Session, Source } from "../session.js";
import type { SpriteSource } from "../sprites.js";

/** What the maps, the matrix and the comparison of encoders read: an open bundle, and the engine's answers. */
export class GallerySource {
  readonly collection: Collection;
  readonly sprites: SpriteSource;
  private readonly files = new Map<string, Promise<Float32Array>>();

  private constructor(
    readonly session: Session,
    private readonly source: Source,
    opened: OpenBundle,
  ) {
    this.collection = opened.collection;
    this.sprites = opened.sprites;
  }

  /** The folder of the bundle, as the address names it. */
  get bundle(): string {
    return this.source.bundle;
  }

  static async open(session: Session, source: Source): Promise<GallerySource> {
    return new GallerySource(session, source, await session.open(source));
  }

  get encoders(): readonly EncoderEntry[] {
    return this.collection.manifest.encoders;
  }

  /** The number of the encoder with this name; null if there is none. */
  encoderNamed(name: string | null): number | null {
    const index = this.encoders.findIndex((encoder) => encoder.name === name);
    return index < 0 ? null : index;
  }

  /** The encoder with the best H-AP. */
  bestEncoder(): number {
    const hAp = (index: number) => this.encoders[index]?.report?.overall?.h_ap ?? 0;
    return this.encoders.reduce((best, _, index) => (hAp(index) > hAp(best) ? index : best), 0);
  }

  /** The numbers of a file of the bundle, which the engine has checked. */
  numbers(path: string): Promise<Float32Array> {
    let file = this.files.get(path);
    if (!file) {
      file = this.read(path);
      file.catch(() => this.files.delete(path));
      this.files.set(path, file);
    }
    return file;
  }

  /** As `numbers`, for a file of items or proxies. */
  async wholeNumbers(path: string): Promise<Uint32Array> {
    return new Uint32Array((await this.numbers(path)).buffer);
  }

  private async read(path: string): Promise<Float32Array> {
    await this.session.open(this.source);
    const bytes = await this.session.call("file", { path });
    return new Float32Array(bytes.slice().buffer);
  }

  /** The ranking of the gallery by an item of the bundle. */
  async rank(encoder: number, item: number, k: number): Promise<Ranked> {
    // Another view may have opened another bundle, or the engine may have been lost.
    await this.session.open(this.source);
    await this.session.encoder(encoder);
    return this.session.call("rank", { encoder, k, item, embedding: null, labels: null, own: false });
  }

  /** Whether the reader has chosen WebGPU. */
  get wantsGpu(): boolean {
    return this.source.backend === "webgpu";
  }

  /** Lets the engine's graphics device draw a map on a canvas, as it is told through a port. */
  async drawOn(canvas: OffscreenCanvas, port: MessagePort): Promise<void> {
    const { tile } = this.collection.manifest.thumbnails;
    await this.session.call("map", { canvas, port, tile }, [canvas, port]);
  }

  /** The scores of each query by an encoder; null where the bundle has none. */
  async queryScores(encoder: number): Promise<QueryScores | null> {
    const entry = this.encoders[encoder];
    if (!entry) throw failure("config", `the bundle has no encoder ${encoder}`, "choose one of its encoders");
    const table = entry.query_scores;
    return table ? new QueryScores(table.columns, await this.numbers(table.scores), this.firstQuery) : null;
  }

  /** The first item that is a query: stored queries if there are any, else the gallery. */
  private get firstQuery(): number {
    const { gallery, queries } = this.collection.manifest;
    return queries.count > 0 ? gallery.count : 0;
  }
}

/** The scores of each query, as the export stored them. */
export class QueryScores {
  readonly count: number;

  constructor(
    private readonly columns: readonly { metric: string; level: number }[],
    private readonly values: Float32Array,
    /** The item of the first query. */
    readonly first: number,
  ) {
    this.count = values.length / columns.length;
  }

  /** The value of a query, by its item; null where it has none. */
  value(item: number, metric: string, level = 0): number | null {
    const column = this.columns.findIndex((column) => column.metric === metric && column.level === level);
    const row = item - this.first;
    if (column < 0 || row < 0 || row >= this.count) return null;
    const value = this.values[row * this.columns.length + column] ?? -1;
    return value < 0 ? null : value;
  }

  has(metric: string, level = 0): boolean {
    return this.columns.some((column) => column.metric === metric && column.level === level);
  }

  /** The items of all queries. */
  items(): number[] {
    return Array.from({ length: this.count }, (_, row) => this.first + row);
  }

  /** The mean over items; null where none has a value. */
  mean(items: Iterable<number>, metric: string, level = 0): number | null {
    let [sum, count] = [0, 0];
    for (const item of items) {
      const value = this.value(item, metric, level);
      if (value === null) continue;
      sum += value;
      count += 1;
    }
    return count > 0 ? sum / count : null;
  }
}
