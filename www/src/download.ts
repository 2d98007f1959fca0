import { failure } from "./failure.js";

/** Called as bytes arrive. `total` is null where the server does not state it. */
export type Progress = (loaded: number, total: number | null) => void;

/**
 * Downloads a file of the page's own origin and reports progress. `expected` is its size where the
 * bundle states it: a compressed transfer does not tell the size.
 */
export async function download(address: string, expected: number | null, progress: Progress): Promise<Uint8Array> {
  const name = new URL(address).pathname.split("/").pop() ?? address;
  let response: Response;
  try {
    response = await fetch(address, { mode: "same-origin", credentials: "same-origin" });
  } catch {
    throw failure("network", `${name} could not be loaded`, "check the connection and reload the page");
  }
  if (!response.ok) {
    throw failure(
      "network",
      `${name} could not be loaded: the server answered ${response.status}`,
      `check that ${address} exists`,
    );
  }
  const stated = response.headers.has("content-encoding") ? null : response.headers.get("content-length");
  const total = expected ?? (stated === null ? null : Number(stated));
  const parts: Uint8Array[] = [];
  let loaded = 0;
  progress(0, total);
  try {
    const reader = response.body?.getReader();
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      parts.push(part.value);
      loaded += part.value.length;
      progress(loaded, total);
    }
  } catch {
    throw failure(
      "network",
      `the download of ${name} broke off after ${loaded} bytes`,
      "check the connection and reload the page",
    );
  }
  const bytes = new Uint8Array(loaded);
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return bytes;
}

/** Reads a file on the reader's device. */
export async function readFile(file: File | undefined, path: string, progress: Progress): Promise<Uint8Array> {
  if (!file) {
    throw failure("bundle", `the folder has no file ${path}`, "choose the whole folder that `akin export` wrote");
  }
  progress(0, file.size);
  try {
    return new Uint8Array(await file.arrayBuffer());
  } catch {
    throw failure("bundle", `${path} could not be read: it was changed or removed`, "choose the folder again");
  }
}
