// Galleries of own pictures that the reader keeps in this browser, in IndexedDB. Each is one record, which is written as
// a whole or not at all.

import { failure, toFailure, type Failure } from "../failure.js";

/** The embeddings by one encoder, as they are kept. */
export interface KeptEncoder {
  readonly name: string;
  /** The text of `identityOf`. */
  readonly identity: string;
  readonly dimension: number;
  /** Numbers of four bytes, little-endian, row by row. */
  readonly embeddings: Blob;
}

/** A gallery as it is kept. The pictures themselves are not. */
export interface KeptGallery {
  readonly version: number;
  /** Milliseconds since 1970, UTC. */
  readonly kept: number;
  readonly name: string;
  /** The bundle whose encoders embedded it, as the address names it. */
  readonly bundle: string;
  readonly bundleTitle: string;
  readonly levels: string[];
  readonly rows: string[];
  /** The names of the files. */
  readonly files: string[];
  readonly sheets: readonly Blob[];
  readonly encoders: readonly KeptEncoder[];
}

/** A kept gallery and its key in the store. */
export interface Kept {
  readonly key: number;
  readonly gallery: KeptGallery;
}

/** The version of the records that this page writes and reads. */
export const VERSION = 1;

const DATABASE = "akin";
const STORE = "own-galleries";

let database: Promise<IDBDatabase> | null = null;

function open(): Promise<IDBDatabase> {
  database ??= new Promise<IDBDatabase>((resolve, reject) => {
    const opening = indexedDB.open(DATABASE, 1);
    opening.addEventListener("upgradeneeded", () => opening.result.createObjectStore(STORE, { autoIncrement: true }));
    opening.addEventListener("error", () => reject(opening.error ?? new Error("it cannot be opened")));
    opening.addEventListener("success", () => {
      const opened = opening.result;
      const close = () => {
        database = null;
      };
      opened.addEventListener("close", close);
      // A newer page in another tab may need it.
      opened.addEventListener("versionchange", () => {
        opened.close();
        close();
      });
      resolve(opened);
    });
  });
  database.catch(() => (database = null));
  return database;
}

/** Runs a transaction. Resolves when what it wrote is on the disk. */
async function run<T>(mode: IDBTransactionMode, ask: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const opened = await open();
  return new Promise((resolve, reject) => {
    const transaction = opened.transaction(STORE, mode, { durability: "strict" });
    const request = ask(transaction.objectStore(STORE));
    transaction.addEventListener("complete", () => resolve(request.result));
    transaction.addEventListener("abort", () =>
      reject(transaction.error ?? request.error ?? new Error("it was stopped")),
    );
  });
}

/** All kept galleries, the first kept first. Their blobs are read only when they are needed. */
export async function keptGalleries(): Promise<Kept[]> {
  const keys = await run("readonly", (store) => store.getAllKeys());
  const galleries = await run("readonly", (store) => store.getAll() as IDBRequest<KeptGallery[]>);
  return galleries.flatMap((gallery, place) => {
    const key = keys[place];
    return typeof key === "number" ? [{ key, gallery }] : [];
  });
}

/** Keeps a gallery, in place of the one with this key. Returns its key. */
export async function keepGallery(gallery: KeptGallery, key: number | null): Promise<number> {
  const taken = await run("readwrite", (store) => (key === null ? store.add(gallery) : store.put(gallery, key)));
  return Number(taken);
}

export const removeGallery = (key: number): Promise<undefined> => run("readwrite", (store) => store.delete(key));

/** The bytes that a kept gallery takes. */
export const bytesOf = ({ sheets, encoders }: Pick<KeptGallery, "sheets" | "encoders">): number =>
  [...sheets, ...encoders.map(({ embeddings }) => embeddings)].reduce((sum, { size }) => sum + size, 0);

/** What went wrong with the store, and what to do. */
export function storeFailure(error: unknown): Failure {
  const { name = "", message = "" } = (error ?? {}) as { name?: string; message?: string };
  switch (name) {
    case "QuotaExceededError":
      return failure(
        "full",
        "the browser has no room left for this gallery, so it was not kept; it is still open in this page",
        "free some space on this device, or remove another gallery, and keep it again; or save it as a bundle",
      );
    case "VersionError":
      return failure(
        "store",
        "the galleries in this browser were kept by a newer version of this page; they stay as they are",
        "close the other tabs of this page, and load it again",
      );
    case "SecurityError":
      return failure(
        "store",
        "the browser does not let this page keep anything",
        "allow this site to keep data in the settings of the browser, or save the gallery as a bundle",
      );
    default:
      return failure(
        "store",
        `the browser cannot read or write what this page keeps: ${message || toFailure(error).message}`,
        "load the page again; what is open here can still be saved as a bundle",
      );
  }
}
