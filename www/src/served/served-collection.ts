import { Collection } from "../collection.js";
import { failure } from "../failure.js";
import type { EncoderEntry } from "../protocol.js";
import { loadOnce, type Sheet, type SpriteSource } from "../sprites.js";

/** An item as the server tells it. */
export interface ServedItem {
  /** Its number in the gallery. */
  readonly item: number;
  /** Its classes, coarse to fine, as far as they are known. */
  readonly labels: readonly string[];
  /** The address of its thumbnail, relative to the page; it says which picture the item is. */
  readonly thumbnail: string;
  /** Its file, if the server shows paths. */
  readonly path?: string;
  /** Its place in the sample, if it is there. */
  readonly sample?: number;
}

/** The items of a sample of a served gallery, and behind them other items that the server has told. */
export class ServedCollection extends Collection {
  private readonly others: { readonly told: ServedItem; readonly ids: Uint32Array }[] = [];
  private readonly places = new Map<string, number>();
  private readonly classes = new Map<string, number>();
  /** The numbers in the gallery of the items of the sample, as far as the server has told them. */
  private readonly numbers = new Map<number, number>();

  /** A gallery of so many pictures. Without labels it has no levels, and the scores of its encoders mean nothing. */
  constructor(
    sample: Collection,
    private readonly all: number,
    hasLabels: boolean,
  ) {
    const { manifest, ids } = sample;
    const without = { taxonomy: { levels: [], classes: [], parents: [] }, encoders: manifest.encoders.map(unreported) };
    // Classes may be added.
    super({ ...manifest, ...(hasLabels ? { taxonomy: structuredClone(manifest.taxonomy) } : without) }, ids);
    const { classes, parents } = this.manifest.taxonomy;
    for (const [index, names] of classes.entries())
      for (const [id, name] of names.entries()) this.classes.set(keyOf(parents[index]?.[id] ?? null, name, index), id);
  }

  override get pictures(): number {
    return this.all;
  }

  /** The place of an item, which it keeps. */
  placeOf(told: ServedItem): number {
    if (told.sample !== undefined) {
      this.numbers.set(told.sample, told.item);
      return told.sample;
    }
    const known = this.places.get(told.thumbnail);
    if (known !== undefined) return known;
    const place = this.count + this.others.push({ told, ids: Uint32Array.from(this.idsOf(told.labels)) }) - 1;
    this.places.set(told.thumbnail, place);
    return place;
  }

  /** What the server has told of an item; null for one of the sample. */
  told(item: number): ServedItem | null {
    return this.others[item - this.count]?.told ?? null;
  }

  /** The ids of the classes of a path. Those that the gallery did not have when the sample was taken are added. */
  idsOf(names: readonly string[]): number[] {
    const { classes, parents } = this.manifest.taxonomy;
    const ids: number[] = [];
    for (const [index, name] of names.slice(0, this.depth).entries()) {
      const above = ids[index - 1] ?? null;
      const key = keyOf(above, name, index);
      const id = this.classes.get(key) ?? (classes[index]?.push(name) ?? 1) - 1;
      if (!this.classes.has(key) && above !== null) parents[index]?.push(above);
      this.classes.set(key, id);
      ids.push(id);
    }
    return ids;
  }

  override labels(item: number): Uint32Array {
    return this.others[item - this.count]?.ids ?? super.labels(item);
  }

  override name(item: number): string {
    if (this.labels(item).length > 0) return super.name(item);
    const told = this.told(item);
    const number = told?.item ?? this.numbers.get(item);
    return told?.path?.split(/[/\\]/).at(-1) ?? (number === undefined ? "A picture" : `Picture ${number}`);
  }

  override isStoredQuery(): boolean {
    return false;
  }
}

const unreported = (encoder: EncoderEntry): EncoderEntry => ({ ...encoder, report: null });

const keyOf = (above: number | null, name: string, index: number) => `${index}/${above ?? ""}/${name}`;

/** The thumbnails of a served gallery: the sheets of the sample, and a sheet for each other item. */
export class ServedSprites implements SpriteSource {
  private readonly loaded = new Map<number, Promise<Sheet>>();

  constructor(
    private readonly collection: ServedCollection,
    private readonly sample: SpriteSource,
  ) {}

  place(item: number): { sheet: number; column: number; row: number } {
    if (!this.collection.told(item)) return this.sample.place(item);
    return { sheet: this.sheets + item - this.collection.count, column: 0, row: 0 };
  }

  sheet(index: number): Promise<Sheet> {
    if (index < this.sheets) return this.sample.sheet(index);
    return loadOnce(this.loaded, index, () => this.load(this.collection.count + index - this.sheets));
  }

  private get sheets(): number {
    return this.collection.manifest.thumbnails.sheets.length;
  }

  private async load(item: number): Promise<Sheet> {
    const { tile } = this.collection.manifest.thumbnails;
    const url = new URL(this.collection.told(item)?.thumbnail ?? "", document.baseURI);
    url.searchParams.set("side", String(tile));
    url.searchParams.set("square", "true");
    const image = new Image();
    image.src = url.href;
    await image.decode().catch(() => {
      throw failure("image", "the server cannot read this picture any more", "refresh the gallery with `akin index`");
    });
    return { url: url.href, columns: 1 };
  }
}
