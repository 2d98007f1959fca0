// Bundles that are on no server: folders on the reader's device, which are read where they are, so that nothing leaves
// the device, and bundles that a notebook reads.

import { failure } from "./failure.js";
import type { Files } from "./protocol.js";

/** What stands in the address for such a bundle. A link to it works only as long as this page is open. */
const PREFIX = "local:";

const opened = new Map<string, () => Files>();

export const isLocal = (bundle: string): boolean => bundle.startsWith(PREFIX);

/** Whether the files of such a bundle are at hand. */
export const isOpenLocal = (bundle: string): boolean => opened.has(bundle);

/** Remembers the files of a bundle; `files` is called each time that they are needed. Returns its name in the address. */
export function addLocal(folder: string, files: () => Files): string {
  let name = PREFIX + folder;
  for (let number = 2; opened.has(name); number++) name = `${PREFIX}${folder} ${number}`;
  opened.set(name, files);
  return name;
}

/** The files of a bundle that was opened in this visit. */
export function localFiles(bundle: string): Files {
  const files = opened.get(bundle);
  if (files) return files();
  throw failure(
    "bundle",
    `the folder “${bundle.slice(PREFIX.length)}” is not open any more, because the page was loaded again`,
    "choose the folder again under “Open another bundle”",
  );
}
