import { failure, toFailure, type Failure } from "../failure.js";
import type { Manifest } from "../protocol.js";
import type { Source } from "../session.js";
import { OwnGallery, STOPPED, type Progress } from "./own-gallery.js";
import type { Folder } from "./photos.js";
import { keepGallery, keptGalleries, removeGallery, storeFailure, VERSION, type Kept } from "./store.js";

/** An embedding of own pictures in progress. */
export interface Embedding {
  readonly encoder: string;
  done: number;
  total: number;
  /** When the first picture was embedded, in milliseconds. */
  started: number;
  /** Whether what is done becomes a gallery when the reader stops. */
  readonly keeps: boolean;
  readonly stop: () => void;
  readonly discard: () => void;
}

/** What is being done with the chosen gallery. */
export type Busy = "keeping" | "exporting" | "removing" | null;

/** The page shows the progress at most this often, in milliseconds. */
const DRAW_MS = 100;

/** How much this page keeps in the browser, and how much it may. Null where the browser does not tell. */
export interface Room {
  readonly used: number | null;
  readonly quota: number | null;
  /** Whether the browser has promised to remove nothing by itself. */
  readonly promised: boolean;
}

/**
 * The reader's own pictures: the galleries that they made or kept, and the embedding in progress. One gallery that is not
 * kept is open at a time; kept ones are read from the store when they are chosen.
 */
export class OwnPhotos {
  /** The gallery that is shown, or was shown last. */
  gallery: OwnGallery | null = null;
  /** The galleries in the store. */
  kept: readonly Kept[] = [];
  embedding: Embedding | null = null;
  failure: Failure | null = null;
  /** The kept gallery that `failure` is about, if it is about one. */
  refused: Kept | null = null;
  /** What went wrong with the store, or with the exported bundle. */
  storeFailure: Failure | null = null;
  busy: Busy = null;
  room: Room | null = null;

  /** The open galleries: those that were made or read in this visit. */
  private readonly open = new Set<OwnGallery>();

  constructor(private readonly changed: () => void) {}

  /** Finds what is kept. A browser without a store has kept nothing. */
  async start(): Promise<void> {
    try {
      this.kept = await keptGalleries();
    } catch (error) {
      const hasNone =
        typeof indexedDB === "undefined" || (error as { name?: unknown } | null)?.name === "SecurityError";
      if (!hasNone) this.failure = storeFailure(error);
    }
    this.changed();
  }

  /** The open gallery that is not kept, if there is one. */
  get unkept(): OwnGallery | null {
    return [...this.open].find(({ kept }) => kept === null) ?? null;
  }

  /** The chosen folder or archive, or null if it cannot be read. */
  async read(folder: Folder | Promise<Folder>): Promise<Folder | null> {
    Object.assign(this, { failure: null, refused: null });
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

  /** Shows why a folder, or a kept gallery, could not be used. */
  refuse(reason: Failure, refused: Kept | null = null): void {
    Object.assign(this, { failure: reason, refused });
    this.changed();
  }

  /** Shows no such reason any more. */
  clear(): void {
    Object.assign(this, { failure: null, refused: null });
    this.changed();
  }

  /** Makes a gallery with an encoder of the open bundle; it replaces one that is not kept. Resolves to whether it was made. */
  make(folder: Folder, source: Source, base: Manifest, encoder: number): Promise<boolean> {
    return this.run(base.encoders[encoder]?.name ?? "", folder.photos.length, true, async (progress, signal) => {
      if (folder.photos.length === 0) {
        throw failure(
          "image",
          `“${folder.name}” has no photos`,
          "choose a folder with pictures in the formats JPEG, PNG, WebP, GIF, BMP or AVIF",
        );
      }
      const gallery = await OwnGallery.make(folder, source, base, encoder, progress, signal);
      if (this.unkept) this.close(this.unkept);
      this.open.add(gallery);
      this.gallery = gallery;
    });
  }

  /** The gallery of a record, if it is open. */
  opened(key: number): OwnGallery | null {
    return [...this.open].find(({ kept }) => kept?.key === key) ?? null;
  }

  /** Reads a kept gallery for the open bundle. Fails where its embeddings cannot be compared with those of the bundle. */
  async restore(kept: Kept, source: Source, base: Manifest): Promise<OwnGallery> {
    const { name, version, bundleTitle, encoders } = kept.gallery;
    if (version !== VERSION) {
      throw failure(
        "store",
        `“${name}” was kept by another version of this page, in a form that this one does not read; it stays as it is`,
        "load the page again, or remove the gallery and choose its folder again",
      );
    }
    if (!OwnGallery.fits(kept, base)) {
      throw failure(
        "store",
        `“${name}” was embedded with ${encoders[0]?.name ?? "an encoder"} of “${bundleTitle}”, and this bundle has another encoder, whose embeddings cannot be compared with those; the gallery stays as it is`,
        "open the bundle that it was made with, or choose its folder again",
      );
    }
    const gallery = await OwnGallery.restore(kept, source, base);
    this.open.add(gallery);
    this.gallery = gallery;
    return gallery;
  }

  /** Embeds the gallery with another encoder. Resolves to whether it was. */
  async embed(encoder: number, name: string): Promise<boolean> {
    const { gallery } = this;
    if (!gallery || gallery.has(encoder)) return gallery !== null;
    const { count } = gallery.bundle.collection;
    const isEmbedded = await this.run(name, count, false, (progress, signal) =>
      gallery.embed(encoder, progress, signal),
    );
    if (isEmbedded && gallery.kept) void this.keep();
    return isEmbedded;
  }

  // --- Keeping -----------------------------------------------------------------------------------

  /** Keeps the gallery in this browser. Without room, what was kept before stays. */
  keep(): Promise<boolean> {
    return this.work("keeping", storeFailure, async (gallery) => {
      // The browser may ask the reader, who has just asked for this.
      await navigator.storage?.persist?.().catch(() => false);
      const record = gallery.record();
      const key = await keepGallery(record, gallery.kept?.key ?? null);
      gallery.kept = { key, gallery: record };
      this.kept = [...this.kept.filter((other) => other.key !== key), gallery.kept];
      await this.measure();
    });
  }

  /** Removes the gallery from this page and from the store. */
  remove(): Promise<boolean> {
    return this.work("removing", storeFailure, async (gallery) => {
      if (gallery.kept) await this.drop(gallery.kept);
      this.close(gallery);
      this.gallery = null;
    });
  }

  /** Removes a kept gallery that is not open. */
  async removeKept(kept: Kept): Promise<void> {
    try {
      await this.drop(kept);
      this.clear();
    } catch (error) {
      this.refuse(storeFailure(error), kept);
    }
  }

  /** Saves the gallery as a bundle, in one archive. What writes it is loaded with the first one. */
  export(): Promise<boolean> {
    return this.work("exporting", toFailure, async (gallery) => {
      const { exportBundle } = await import("./export.js");
      await exportBundle(gallery);
    });
  }

  /** Asks the browser how much this page keeps, and how much it may. */
  async measure(): Promise<void> {
    const estimate = await navigator.storage?.estimate?.().catch(() => null);
    const promised = (await navigator.storage?.persisted?.().catch(() => false)) ?? false;
    this.room = { used: estimate?.usage ?? null, quota: estimate?.quota ?? null, promised };
    this.changed();
  }

  private async drop({ key }: Kept): Promise<void> {
    await removeGallery(key);
    this.kept = this.kept.filter((other) => other.key !== key);
  }

  private close(gallery: OwnGallery): void {
    this.open.delete(gallery);
    gallery.dispose();
  }

  /** Does one thing with the gallery at a time. Resolves to whether it was done. */
  private async work(
    busy: Exclude<Busy, null>,
    explain: (error: unknown) => Failure,
    what: (gallery: OwnGallery) => Promise<void>,
  ): Promise<boolean> {
    const { gallery } = this;
    if (!gallery || this.busy) return false;
    Object.assign(this, { busy, storeFailure: null });
    this.changed();
    try {
      await what(gallery);
      return true;
    } catch (error) {
      this.storeFailure = explain(error);
      return false;
    } finally {
      this.busy = null;
      this.changed();
    }
  }

  private async run(
    encoder: string,
    total: number,
    keeps: boolean,
    work: (progress: Progress, signal: AbortSignal) => Promise<void>,
  ): Promise<boolean> {
    this.embedding?.discard();
    const controller = new AbortController();
    const embedding: Embedding = {
      encoder,
      done: 0,
      total,
      started: performance.now(),
      keeps,
      stop: () => controller.abort(STOPPED),
      discard: () => controller.abort(),
    };
    let drawn = -Infinity;
    const progress = (done: number, total: number) => {
      const now = performance.now();
      if (done === 0) embedding.started = now;
      Object.assign(embedding, { done, total });
      // To draw the page takes as long as to embed a small picture.
      if (now - drawn < DRAW_MS && done < total) return;
      drawn = now;
      this.changed();
    };
    Object.assign(this, { embedding, failure: null, refused: null });
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
