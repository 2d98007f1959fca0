import { failure, type Failure } from "./failure.js";
import type { FileAnswer, FileRequest, Files, ProgressState } from "./protocol.js";

/** Called as bytes arrive. `total` is null where the server does not state it. */
export type Progress = (loaded: number, total: number | null, state?: ProgressState) => void;

/** How long a download that broke off waits before it goes on, in milliseconds, time after time. */
const PAUSES_MS = [300, 1000, 3000];

/** What has arrived of a file. */
interface Part {
  pieces: Uint8Array[];
  loaded: number;
  total: number | null;
  /** Names the version of the file, so that no other version is added to it. */
  tag: string | null;
}

/**
 * Downloads a file of the page's own origin and reports progress. `expected` is its size where the
 * bundle states it: a compressed transfer does not tell the size.
 */
export async function download(address: string, expected: number | null, progress: Progress): Promise<Uint8Array> {
  const name = new URL(address).pathname.split("/").pop() ?? address;
  const part: Part = { pieces: [], loaded: 0, total: expected, tag: null };
  for (let attempt = 0; !(await arrives(address, name, part, progress)); attempt++) {
    const pause = PAUSES_MS[attempt];
    if (pause === undefined) {
      throw failure(
        "network",
        `the download of ${name} broke off ${attempt + 1} times`,
        "check the connection and try again",
      );
    }
    progress(part.loaded, part.total, "broken");
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  return joined(part, name);
}

/** Downloads what is missing of a file. False if the connection broke off before the end. */
async function arrives(address: string, name: string, part: Part, progress: Progress): Promise<boolean> {
  let response: Response;
  try {
    response = await fetch(address, {
      mode: "same-origin",
      credentials: "same-origin",
      // A manifest names the other files, so an old one would not fit them.
      cache: name.endsWith(".json") ? "no-cache" : "default",
      headers: part.tag && part.loaded > 0 ? { range: `bytes=${part.loaded}-`, "if-range": part.tag } : {},
    });
  } catch {
    // Without a first answer, the server cannot be reached at all.
    if (part.loaded > 0) return false;
    throw failure("network", `${name} could not be loaded`, "check the connection and try again");
  }
  if (!response.ok) {
    throw failure(
      "network",
      `${name} could not be loaded: the server answered ${response.status}`,
      `check that ${address} exists`,
    );
  }
  if (response.status !== 206) {
    part.pieces = [];
    part.loaded = 0;
    const stated = response.headers.has("content-encoding") ? null : response.headers.get("content-length");
    part.total ??= stated === null ? null : Number(stated);
    part.tag = response.headers.get("etag");
  }
  progress(part.loaded, part.total);
  const reader = response.body?.getReader();
  try {
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
      part.pieces.push(piece.value);
      part.loaded += piece.value.length;
      progress(part.loaded, part.total);
    }
  } catch {
    return false;
  }
  return true;
}

function joined({ pieces, loaded }: Part, name: string): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = new Uint8Array(loaded);
  } catch {
    throw refusedMemory(name, loaded);
  }
  let offset = 0;
  for (const piece of pieces) {
    bytes.set(piece, offset);
    offset += piece.length;
  }
  return bytes;
}

/** Reads a file of a bundle that is on no server, by its path. */
export type ReadFile = (path: string, progress: Progress) => Promise<Uint8Array>;

export function readFrom(files: Files): ReadFile {
  return files instanceof MessagePort
    ? askThrough(files)
    : (path, progress) => readFile(files.get(path), path, progress);
}

/** Reads files by asking for them through a port (notebook/kernel.ts). */
function askThrough(port: MessagePort): ReadFile {
  let next = 1;
  const waiting = new Map<number, (answer: FileAnswer) => void>();
  port.addEventListener("message", ({ data }: MessageEvent<FileAnswer>) => {
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
  });
  port.start();
  return async (path) => {
    const { bytes, reason } = await new Promise<FileAnswer>((resolve) => {
      const request: FileRequest = { id: next++, path };
      waiting.set(request.id, resolve);
      port.postMessage(request);
    });
    if (bytes) return bytes;
    throw failure("bundle", reason, "run the cell again");
  };
}

async function readFile(file: File | undefined, path: string, progress: Progress): Promise<Uint8Array> {
  if (!file) {
    throw failure("bundle", `the folder has no file ${path}`, "choose the whole folder that `akin export` wrote");
  }
  progress(0, file.size);
  try {
    return new Uint8Array(await file.arrayBuffer());
  } catch (error) {
    if (error instanceof RangeError) throw refusedMemory(path, file.size);
    throw failure("bundle", `${path} could not be read: it was changed or removed`, "choose the folder again");
  }
}

const refusedMemory = (name: string, bytes: number): Failure =>
  failure(
    "memory",
    `the browser has no memory left for ${name} (${(bytes / 1e6).toFixed(1)} MB)`,
    "close other tabs and programs, and try again",
  );
