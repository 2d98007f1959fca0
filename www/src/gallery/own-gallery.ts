import { Collection } from "../collection.js";
import { failure, toFailure } from "../failure.js";
import type { Manifest } from "../protocol.js";
import { session, type OpenBundle, type Source } from "../session.js";
import { folderLabels, type Folder, type Photo } from "./photos.js";
import { OwnThumbnails } from "./thumbnails.js";

/** A picture that was left out, and why. */
export interface Damaged {
  readonly name: string;
  readonly reason: string;
}

/** Called after each picture. */
export type Progress = (done: number, total: number) => void;

/**
 * A gallery of the reader's own pictures. The engine embeds them with the encoders of a bundle; pictures, thumbnails
 * and embeddings stay in the memory of this page.
 */
export class OwnGallery {
  private readonly embeddings = new Map<number, Float32Array>();

  private constructor(
    /** The bundle whose encoders embed the pictures. */
    readonly source: Source,
    readonly folder: Folder,
    readonly damaged: readonly Damaged[],
    readonly bundle: OpenBundle,
    private readonly photos: readonly Photo[],
    private readonly labels: { levels: string[]; rows: string[] },
    private readonly thumbnails: OwnThumbnails,
  ) {}

  /**
   * Embeds a folder with an encoder of the open bundle `base`, and makes the thumbnails. Pictures that cannot be
   * read are left out. Fails if none can be read, if the engine fails, or with the reason of `signal`.
   */
  static async make(
    folder: Folder,
    source: Source,
    base: Manifest,
    encoder: number,
    progress: Progress,
    signal: AbortSignal,
  ): Promise<OwnGallery> {
    const thumbnails = new OwnThumbnails();
    const [rows, damaged, photos]: [Float32Array[], Damaged[], Photo[]] = [[], [], []];
    try {
      await embedAll(folder.photos, encoder, progress, signal, async (photo, embedded) => {
        if (!(embedded instanceof Float32Array)) {
          damaged.push({ name: [...photo.folders, photo.file.name].join("/"), reason: embedded.message });
          return;
        }
        const bitmap = await createImageBitmap(photo.file).catch(() => null);
        await thumbnails.add(bitmap);
        bitmap?.close();
        rows.push(embedded);
        photos.push(photo);
      });
      await thumbnails.finish();
      if (photos.length === 0) {
        throw failure(
          "image",
          `none of the ${folder.photos.length} pictures in “${folder.name}” could be read`,
          "choose a folder of photos in the formats JPEG, PNG or WebP",
        );
      }
      const labels = folderLabels(photos, folder.name);
      const taxonomy = await session.call("startOwn", labels);
      const manifest = manifestOf(folder.name, labels.levels, taxonomy, photos.length, base);
      const names = photos.map(({ file }) => file.name);
      const collection = new Collection(manifest, Uint32Array.from(taxonomy.labels), names);
      const bundle = { collection, sprites: thumbnails };
      const own = new OwnGallery(source, folder, damaged, bundle, photos, labels, thumbnails);
      await own.keep(encoder, rows);
      return own;
    } catch (error) {
      thumbnails.dispose();
      throw error;
    }
  }

  /** The file of a picture. */
  file(item: number): File | null {
    return this.photos[item]?.file ?? null;
  }

  /** Whether the pictures are embedded by an encoder. */
  has(encoder: number): boolean {
    return this.embeddings.has(encoder);
  }

  /** Embeds the pictures with another encoder of the same bundle. */
  async embed(encoder: number, progress: Progress, signal: AbortSignal): Promise<void> {
    if (this.has(encoder)) return;
    const rows: Float32Array[] = [];
    await embedAll(this.photos, encoder, progress, signal, (photo, embedded) => {
      // It could be read before: the file was changed or removed meanwhile.
      if (!(embedded instanceof Float32Array))
        throw { ...embedded, message: `${photo.file.name}: ${embedded.message}` };
      rows.push(embedded);
    });
    await this.keep(encoder, rows);
  }

  /** Gives the gallery to an engine that has been started since. Its encoders must have been loaded. */
  async attach(): Promise<void> {
    await session.call("startOwn", this.labels);
    for (const [encoder, embeddings] of this.embeddings) {
      await session.encoder(encoder);
      await session.call("embedOwn", { encoder, embeddings });
    }
  }

  dispose(): void {
    this.thumbnails.dispose();
  }

  private async keep(encoder: number, rows: readonly Float32Array[]): Promise<void> {
    const dimension = rows[0]?.length ?? 0;
    const embeddings = new Float32Array(rows.length * dimension);
    rows.forEach((row, index) => embeddings.set(row, index * dimension));
    await session.call("embedOwn", { encoder, embeddings });
    this.embeddings.set(encoder, embeddings);
  }
}

/** Embeds photos one after another. `take` gets each with its embedding, or with the failure to read it. */
async function embedAll(
  photos: readonly Photo[],
  encoder: number,
  progress: Progress,
  signal: AbortSignal,
  take: (photo: Photo, embedded: Float32Array | ReturnType<typeof toFailure>) => Promise<void> | void,
): Promise<void> {
  await session.encoder(encoder);
  for (const [index, photo] of photos.entries()) {
    signal.throwIfAborted();
    progress(index, photos.length);
    await take(photo, await embed(photo, encoder));
  }
  signal.throwIfAborted();
  progress(photos.length, photos.length);
}

async function embed({ file }: Photo, encoder: number) {
  let image: Uint8Array;
  try {
    image = new Uint8Array(await file.arrayBuffer());
  } catch {
    return failure("image", "the file cannot be read any more", "choose the folder again");
  }
  try {
    return Float32Array.from((await session.call("embed", { encoder, image })).embedding);
  } catch (error) {
    const failed = toFailure(error);
    if (failed.code === "image") return failed;
    throw failed;
  }
}

/** What the page needs to know of the gallery, in the form of a bundle's manifest. */
function manifestOf(
  title: string,
  levels: string[],
  taxonomy: { classes: string[][]; parents: number[][] },
  count: number,
  base: Manifest,
): Manifest {
  return {
    title,
    description: "",
    licence: "",
    model_card: "",
    taxonomy: { levels, classes: taxonomy.classes, parents: taxonomy.parents },
    gallery: { count },
    queries: { count: 0 },
    labels: "",
    thumbnails: { ...OwnThumbnails.shape, sheets: [] },
    encoders: base.encoders.map(({ name, description, dimension, weights, gallery_embeddings }) => ({
      name,
      description,
      dimension,
      weights: weights ?? null,
      gallery_embeddings,
      query_embeddings: null,
      report: null,
    })),
    files: [],
    digest: "",
  };
}
