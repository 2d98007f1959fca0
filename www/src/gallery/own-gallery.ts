import { Collection } from "../collection.js";
import { failure, toFailure } from "../failure.js";
import type { OwnLabels } from "../messages/engine.js";
import type { Manifest, OwnRows } from "../protocol.js";
import { session, type OpenBundle, type Source } from "../session.js";
import { identityOf } from "./identity.js";
import { mostPictures } from "./limit.js";
import { folderLabels, type Folder, type Photo } from "./photos.js";
import { Rows } from "./rows.js";
import { bytesOf, VERSION, type Kept, type KeptEncoder, type KeptGallery } from "./store.js";
import { OwnThumbnails } from "./thumbnails.js";

/** A picture that was left out, and why. */
export interface Damaged {
  readonly name: string;
  readonly reason: string;
}

/** What a folder has beside the pictures of its gallery. */
export interface LeftOut {
  readonly damaged: readonly Damaged[];
  /** The number of files that are no pictures. */
  readonly others: number;
  /** The number of pictures for which there is no memory. */
  readonly beyond: number;
  /** The number of pictures that came after the reader stopped. */
  readonly stopped: number;
}

/** Called after each picture. */
export type Progress = (done: number, total: number) => void;

/** The reason of a signal that stops an embedding and keeps what is done. */
export const STOPPED = Symbol("stopped");

/** What a gallery is made of. */
interface Parts {
  readonly source: Source;
  readonly base: Manifest;
  readonly name: string;
  readonly leftOut: LeftOut;
  readonly files: readonly string[];
  readonly photos: readonly Photo[] | null;
  readonly labels: OwnRows;
  readonly thumbnails: OwnThumbnails;
  readonly kept: Kept | null;
  /** Kept embeddings by encoders that the open bundle does not have. */
  readonly foreign: readonly KeptEncoder[];
}

/**
 * A gallery of the reader's own pictures. The engine embeds them with the encoders of a bundle; pictures, thumbnails
 * and embeddings stay in the memory of this page, and in its store if the reader keeps them.
 */
export class OwnGallery {
  private readonly embeddings = new Map<number, Float32Array>();
  readonly bundle: OpenBundle;
  /** Its place in the store, and when it was kept. Null while it is not kept. */
  kept: Kept | null;

  private constructor(
    private readonly parts: Parts,
    /** Its classes, and the classes of its pictures. */
    readonly taxonomy: OwnLabels,
  ) {
    const { name, base, files, labels, thumbnails } = parts;
    this.kept = parts.kept;
    const manifest = manifestOf(name, labels.levels, taxonomy, files.length, base);
    const collection = new Collection(manifest, Uint32Array.from(taxonomy.labels), files);
    this.bundle = { collection, sprites: thumbnails };
  }

  /**
   * Embeds a folder with an encoder of the open bundle `base`, and makes the thumbnails. Pictures that cannot be
   * read are left out, and those after a stop. Fails if none can be read, if the engine fails, or with another reason of
   * `signal`.
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
    const chosen = folder.photos.slice(0, mostPictures(base.encoders[encoder]?.dimension ?? 0));
    const rows = new Rows(chosen.length);
    const [damaged, photos]: [Damaged[], Photo[]] = [[], []];
    try {
      const done = await embedAll(chosen, encoder, progress, signal, async (photo, embedded) => {
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
        signal.throwIfAborted();
        throw failure(
          "image",
          `none of the ${chosen.length} pictures in “${folder.name}” could be read`,
          "choose a folder of photos in the formats JPEG, PNG, WebP, GIF, BMP or AVIF",
        );
      }
      const labels = folderLabels(photos, folder.name);
      const taxonomy = await session.call("startOwn", labels);
      const own = new OwnGallery(
        {
          source,
          base,
          name: folder.name,
          leftOut: {
            damaged,
            others: folder.others,
            beyond: folder.photos.length - chosen.length,
            stopped: chosen.length - done,
          },
          files: photos.map(({ file }) => file.name),
          photos,
          labels,
          thumbnails,
          kept: null,
          foreign: [],
        },
        taxonomy,
      );
      await own.give(encoder, rows.all());
      return own;
    } catch (error) {
      thumbnails.dispose();
      throw error;
    }
  }

  /** Whether a bundle has an encoder that embedded a kept gallery. */
  static fits({ gallery }: Kept, base: Manifest): boolean {
    const known = new Set(base.encoders.map((_, encoder) => identityOf(base, encoder)));
    return gallery.encoders.some(({ identity }) => known.has(identity));
  }

  /** Reads a kept gallery for the open bundle `base`, which must fit. It must be attached before it is asked. */
  static async restore(kept: Kept, source: Source, base: Manifest): Promise<OwnGallery> {
    const { gallery } = kept;
    const damaged = (reason: string) =>
      failure("store", `the kept gallery “${gallery.name}” is damaged: ${reason}`, "choose its folder again");
    const { files, rows, levels, sheets } = gallery;
    if (rows.length !== files.length * levels.length || sheets.length !== OwnThumbnails.sheetsOf(files.length))
      throw damaged("its lists do not fit each other");
    const encoders = base.encoders.map((_, encoder) => identityOf(base, encoder));
    const embedded = await Promise.all(
      gallery.encoders.map(async (kept) => {
        const values = await kept.embeddings.arrayBuffer().catch(() => null);
        if (values?.byteLength !== files.length * kept.dimension * 4)
          throw damaged(`its embeddings by ${kept.name} cannot be read`);
        return { kept, encoder: encoders.indexOf(kept.identity), values: new Float32Array(values) };
      }),
    );
    const labels = { levels, rows };
    const taxonomy = await session.call("startOwn", labels);
    const own = new OwnGallery(
      {
        source,
        base,
        name: gallery.name,
        leftOut: { damaged: [], others: 0, beyond: 0, stopped: 0 },
        files,
        photos: null,
        labels,
        thumbnails: OwnThumbnails.from(sheets),
        kept,
        foreign: embedded.filter(({ encoder }) => encoder < 0).map(({ kept }) => kept),
      },
      taxonomy,
    );
    for (const { encoder, values } of embedded) if (encoder >= 0) own.embeddings.set(encoder, values);
    return own;
  }

  get name(): string {
    return this.parts.name;
  }

  /** The bundle whose encoders embed the pictures. */
  get source(): Source {
    return this.parts.source;
  }

  /** The manifest of that bundle. */
  get base(): Manifest {
    return this.parts.base;
  }

  get leftOut(): LeftOut {
    return this.parts.leftOut;
  }

  get sheets(): readonly Blob[] {
    return this.parts.thumbnails.blobs;
  }

  /** The names of the files. */
  get files(): readonly string[] {
    return this.parts.files;
  }

  /** The file of a picture. Null in a kept gallery, which has only the thumbnails. */
  file(item: number): File | null {
    return this.parts.photos?.[item]?.file ?? null;
  }

  /** Whether the pictures are embedded by an encoder. */
  has(encoder: number): boolean {
    return this.embeddings.has(encoder);
  }

  /** The encoders that have embedded the pictures, each with its embeddings. */
  get embedded(): ReadonlyMap<number, Float32Array> {
    return this.embeddings;
  }

  /** Embeds the pictures with another encoder of the same bundle. */
  async embed(encoder: number, progress: Progress, signal: AbortSignal): Promise<void> {
    if (this.has(encoder)) return;
    const { photos } = this.parts;
    if (!photos) {
      throw failure(
        "image",
        `“${this.name}” was kept without its pictures, so another encoder cannot embed them`,
        "choose its folder again, and embed it with this encoder",
      );
    }
    const rows = new Rows(photos.length);
    await embedAll(photos, encoder, progress, signal, (photo, embedded) => {
      // It could be read before: the file was changed or removed meanwhile.
      if (!(embedded instanceof Float32Array))
        throw { ...embedded, message: `${photo.file.name}: ${embedded.message}` };
      rows.push(embedded);
    });
    // Only all of them make sense beside those of another encoder.
    signal.throwIfAborted();
    await this.give(encoder, rows.all());
  }

  /** Gives the gallery to an engine that has been started since. Its encoders are loaded first. */
  async attach(): Promise<void> {
    await session.call("startOwn", this.parts.labels);
    for (const [encoder, embeddings] of this.embeddings) {
      await session.encoder(encoder);
      await session.call("embedOwn", { encoder, embeddings });
    }
  }

  /** The gallery as the store keeps it. */
  record(): KeptGallery {
    const { name, source, base, labels, files, foreign } = this.parts;
    const encoders = [...this.embeddings].map(([encoder, embeddings]) => ({
      name: base.encoders[encoder]?.name ?? "",
      identity: identityOf(base, encoder),
      dimension: embeddings.length / files.length,
      embeddings: new Blob([embeddings as Float32Array<ArrayBuffer>]),
    }));
    return {
      version: VERSION,
      kept: Date.now(),
      name,
      bundle: source.bundle,
      bundleTitle: base.title,
      ...labels,
      files: [...files],
      sheets: this.sheets,
      encoders: [...encoders, ...foreign],
    };
  }

  /** The bytes that it takes in the store. */
  get bytes(): number {
    const embeddings = [...this.embeddings.values()].reduce((sum, { byteLength }) => sum + byteLength, 0);
    return embeddings + bytesOf({ sheets: this.sheets, encoders: this.parts.foreign });
  }

  dispose(): void {
    this.parts.thumbnails.dispose();
  }

  private async give(encoder: number, embeddings: Float32Array): Promise<void> {
    await session.call("embedOwn", { encoder, embeddings });
    this.embeddings.set(encoder, embeddings);
  }
}

/**
 * Embeds photos one after another, until the signal stops it. `take` gets each with its embedding, or with the failure to
 * read it. Returns the number of photos that it came to.
 */
async function embedAll(
  photos: readonly Photo[],
  encoder: number,
  progress: Progress,
  signal: AbortSignal,
  take: (photo: Photo, embedded: Float32Array | ReturnType<typeof toFailure>) => Promise<void> | void,
): Promise<number> {
  await session.encoder(encoder);
  for (const [index, photo] of photos.entries()) {
    if (signal.aborted && signal.reason === STOPPED) return index;
    signal.throwIfAborted();
    progress(index, photos.length);
    await take(photo, await embed(photo, encoder));
  }
  progress(photos.length, photos.length);
  return photos.length;
}

async function embed({ file }: Photo, encoder: number) {
  try {
    return Float32Array.from((await session.call("embed", { encoder, image: file })).embedding);
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
