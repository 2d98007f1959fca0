import type { Client } from "./client.js";
import type { Manifest } from "./protocol.js";

const TYPES: Record<string, string> = { jpg: "image/jpeg", jpeg: "image/jpeg", png: "image/png", webp: "image/webp" };

export interface Sheet {
  url: string;
  columns: number;
}

/** The thumbnails of a gallery, on sheets. */
export interface SpriteSource {
  /** The place of `item`: its sheet, and its column and row on it. */
  place(item: number): { sheet: number; column: number; row: number };
  sheet(index: number): Promise<Sheet>;
}

/** A sheet that is loaded when it is first needed, and again if that failed. */
export function loadOnce(
  sheets: Map<number, Promise<Sheet>>,
  index: number,
  load: () => Promise<Sheet>,
): Promise<Sheet> {
  let sheet = sheets.get(index);
  if (!sheet) {
    sheet = load();
    sheet.catch(() => sheets.delete(index));
    sheets.set(index, sheet);
  }
  return sheet;
}

/** The bundle's thumbnails. A sheet is loaded and checked when it is first needed. */
export class Sprites implements SpriteSource {
  private readonly sheets = new Map<number, Promise<Sheet>>();

  constructor(
    private readonly client: Client,
    private readonly shape: Manifest["thumbnails"],
  ) {}

  place(item: number): { sheet: number; column: number; row: number } {
    const { columns, rows } = this.shape;
    const index = item % (columns * rows);
    return { sheet: Math.floor(item / (columns * rows)), column: index % columns, row: Math.floor(index / columns) };
  }

  sheet(index: number): Promise<Sheet> {
    return loadOnce(this.sheets, index, () => this.load(index));
  }

  private async load(index: number): Promise<Sheet> {
    const bytes = await this.client.call("sheet", { index });
    const type = TYPES[this.shape.sheets[index]?.split(".").pop()?.toLowerCase() ?? ""] ?? "image/jpeg";
    const url = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }));
    const image = new Image();
    image.src = url;
    await image.decode();
    // The last sheet may be narrower than the others.
    return { url, columns: image.naturalWidth / this.shape.tile };
  }
}
