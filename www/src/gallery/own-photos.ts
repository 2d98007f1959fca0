import { failure, toFailure, type Failure } from "../failure.js";
import type { Manifest } from "../protocol.js";
import type { Source } from "../session.js";
import { OwnGallery, type Progress } from "./own-gallery.js";
import type { Folder } from "./photos.js";

/** An embedding of own pictures in progress. */
export interface Embedding {
  readonly encoder: string;
  done: number;
  total: number;
  readonly cancel: () => void;
}

/** The reader's own pictures: the gallery that they make, and the embedding in progress. There is one gallery at a time. */
export class OwnPhotos {
  gallery: OwnGallery | null = null;
  embedding: Embedding | null = null;
  failure: Failure | null = null;

  constructor(private readonly changed: () => void) {}

  /** The chosen folder or archive, or null if it cannot be read. */
  async read(folder: Folder | Promise<Folder>): Promise<Folder | null> {
    this.failure = null;
    try {
      return await folder;
    } catch (error) {
      const known = toFailure(error);
      this.failure =
        known.code === "bundle"
          ? known
          : failure("image", "the dropped folder cannot be read", "choose it with the button instead");
      this.changed();
      return null;
    }
  }

  /** Shows why a folder could not be used. */
  refuse(reason: Failure): void {
    this.failure = reason;
    this.changed();
  }

  /** Makes a gallery with an encoder of the open bundle; it replaces an earlier one. Resolves to whether it was made. */
  make(folder: Folder, source: Source, base: Manifest, encoder: number): Promise<boolean> {
    return this.run(base.encoders[encoder]?.name ?? "", folder.photos.length, async (progress, signal) => {
      if (folder.photos.length === 0) {
        throw failure(
          "image",
          `“${folder.name}” has no photos`,
          "choose a folder with pictures in the formats JPEG, PNG or WebP",
        );
      }
      const gallery = await OwnGallery.make(folder, source, base, encoder, progress, signal);
      this.gallery?.dispose();
      this.gallery = gallery;
    });
  }

  /** Embeds the gallery with another encoder. Resolves to whether it was. */
  embed(encoder: number, name: string): Promise<boolean> {
    const { gallery } = this;
    if (!gallery || gallery.has(encoder)) return Promise.resolve(gallery !== null);
    return this.run(name, gallery.bundle.collection.count, (progress, signal) =>
      gallery.embed(encoder, progress, signal),
    );
  }

  private async run(
    encoder: string,
    total: number,
    work: (progress: Progress, signal: AbortSignal) => Promise<void>,
  ): Promise<boolean> {
    this.embedding?.cancel();
    const controller = new AbortController();
    const embedding: Embedding = { encoder, done: 0, total, cancel: () => controller.abort() };
    const progress = (done: number) => {
      embedding.done = done;
      this.changed();
    };
    Object.assign(this, { embedding, failure: null });
    this.changed();
    try {
      await work(progress, controller.signal);
      return true;
    } catch (error) {
      if (!controller.signal.aborted) this.failure = toFailure(error);
      return false;
    } finally {
      if (this.embedding === embedding) this.embedding = null;
      this.changed();
    }
  }
}
