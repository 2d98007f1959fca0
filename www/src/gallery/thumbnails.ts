import { failure } from "../failure.js";
import type { Sheet, SpriteSource } from "../sprites.js";

const TILE = 96;
const COLUMNS = 20;
const ON_SHEET = COLUMNS * COLUMNS;

/**
 * The thumbnails of own pictures. The page draws them onto sheets as those of a bundle, and keeps one sheet at a time
 * uncompressed.
 */
export class OwnThumbnails implements SpriteSource {
  static readonly shape = { tile: TILE, columns: COLUMNS, rows: COLUMNS };

  /** The compressed sheets. */
  readonly blobs: Blob[] = [];
  private readonly urls: string[] = [];
  private count = 0;
  private canvas: HTMLCanvasElement | null = null;

  /** The thumbnails on sheets that were kept. */
  static from(blobs: readonly Blob[]): OwnThumbnails {
    const thumbnails = new OwnThumbnails();
    for (const blob of blobs) thumbnails.push(blob);
    return thumbnails;
  }

  /** The number of sheets of so many pictures. */
  static sheetsOf(pictures: number): number {
    return Math.ceil(pictures / ON_SHEET);
  }

  place(item: number) {
    const index = item % ON_SHEET;
    return { sheet: Math.floor(item / ON_SHEET), column: index % COLUMNS, row: Math.floor(index / COLUMNS) };
  }

  sheet(index: number): Promise<Sheet> {
    return Promise.resolve({ url: this.urls[index] ?? "", columns: COLUMNS });
  }

  /** Appends the central square of a picture, or an empty tile where the browser cannot show it. */
  async add(bitmap: ImageBitmap | null): Promise<void> {
    const canvas = (this.canvas ??= newSheet());
    const { column, row } = this.place(this.count++);
    if (bitmap) {
      const context = canvas.getContext("2d");
      const side = Math.min(bitmap.width, bitmap.height);
      const [x, y] = [(bitmap.width - side) / 2, (bitmap.height - side) / 2];
      if (context) context.imageSmoothingQuality = "high";
      context?.drawImage(bitmap, x, y, side, side, column * TILE, row * TILE, TILE, TILE);
    }
    if (this.count % ON_SHEET === 0) await this.finish();
  }

  /** Compresses the sheet in work. */
  async finish(): Promise<void> {
    const { canvas } = this;
    if (!canvas) return;
    this.canvas = null;
    const sheet = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.85));
    if (!sheet)
      throw failure(
        "memory",
        "the browser has no memory left for the thumbnails",
        "close other tabs and programs, or choose fewer pictures",
      );
    this.push(sheet);
  }

  private push(sheet: Blob): void {
    this.blobs.push(sheet);
    this.urls.push(URL.createObjectURL(sheet));
  }

  dispose(): void {
    for (const url of this.urls) URL.revokeObjectURL(url);
  }
}

function newSheet(): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = COLUMNS * TILE;
  return canvas;
}
