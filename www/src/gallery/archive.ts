// A bundle in a zip archive. The archive is read where it is, in two passes: the first finds `bundle.json`, the second
// takes the files that it names, each up to the size that it names. So an archive cannot fill the memory.

import { Unzip, UnzipInflate, type UnzipFile } from "fflate";
import { failure } from "../failure.js";

/** In bytes. A browser cannot hold much more than `MOST_IN_ALL` beside the engine. */
const MOST_OF_MANIFEST = 64_000_000;
const MOST_IN_ALL = 2_000_000_000;

const ANOTHER = "choose the archive of a folder that `akin export` wrote";

const refuse = (message: string, hint = ANOTHER) => failure("bundle", message, hint);

/** Reads all files for which `limitOf` gives a limit in bytes. */
async function extract(
  archive: File,
  limitOf: (path: string) => number | undefined,
): Promise<Map<string, Uint8Array<ArrayBuffer>[]>> {
  const found = new Map<string, Uint8Array<ArrayBuffer>[]>();
  const names = new Set<string>();
  let problem: unknown = null;
  const take = (file: UnzipFile) => {
    const { name } = file;
    if (name.split(/[/\\]/).includes("..") || /^[/\\]|^[a-z]:|\0/i.test(name))
      throw refuse(`the archive “${archive.name}” names a file outside of itself, “${name}”`);
    if (names.has(name)) throw refuse(`the archive “${archive.name}” has two files “${name}”`);
    names.add(name);
    const limit = limitOf(name);
    if (limit === undefined) return;
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let bytes = 0;
    file.ondata = (error, part) => {
      if (error) throw error;
      bytes += part.length;
      if (bytes > limit) throw refuse(`“${name}” in the archive is larger than ${limit.toLocaleString("en")} bytes`);
      parts.push(part.slice());
    };
    found.set(name, parts);
    file.start();
  };
  const unzip = new Unzip((file) => {
    try {
      take(file);
    } catch (error) {
      problem ??= error;
    }
  });
  unzip.register(UnzipInflate);
  const reader = archive.stream().getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      unzip.push(value ?? new Uint8Array(), done);
      if (problem) throw problem as Error;
      if (done) return found;
    }
  } catch (error) {
    await reader.cancel();
    if (error && (error as { code?: unknown }).code === "bundle") throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw refuse(
      `the archive “${archive.name}” cannot be read: ${reason}`,
      "make the archive anew, without a password",
    );
  }
}

/** The files of the bundle that an archive holds, by their paths in it. */
export async function readArchive(archive: File): Promise<ReadonlyMap<string, File>> {
  const isManifest = (path: string) => /(^|\/)bundle\.json$/.test(path);
  const manifests = await extract(archive, (path) => (isManifest(path) ? MOST_OF_MANIFEST : undefined));
  const depth = (path: string) => path.split("/").length;
  const [top] = [...manifests].sort(([a], [b]) => depth(a) - depth(b));
  if (!top) throw refuse(`the archive “${archive.name}” holds no bundle.json`);
  const [path, parts] = top;
  const folder = path.slice(0, -"bundle.json".length);
  const manifest = new File(parts, "bundle.json");
  const sizes = sizesOf(await manifest.text(), archive.name);
  const sum = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  if (sum > MOST_IN_ALL)
    throw refuse(
      `the bundle in “${archive.name}” has ${Math.round(sum / 1e6).toLocaleString("en")} MB, which a browser cannot hold`,
      "unpack the archive and choose its folder",
    );
  const inside = (path: string) => (path.startsWith(folder) ? path.slice(folder.length) : null);
  const files = await extract(archive, (path) => sizes.get(inside(path) ?? ""));
  const named = [...files].map(([path, parts]): [string, File] => [inside(path) ?? path, new File(parts, path)]);
  return new Map([["bundle.json", manifest], ...named]);
}

/** The size in bytes of every file that a manifest names. The engine checks the manifest, and the files by it. */
function sizesOf(manifest: string, archive: string): Map<string, number> {
  let read: unknown;
  try {
    read = JSON.parse(manifest);
  } catch {
    // What is not JSON names no files.
  }
  const { files } = (read ?? {}) as { files?: unknown };
  const entries = (Array.isArray(files) ? files : []) as { path?: unknown; bytes?: unknown }[];
  const sizes = entries.flatMap(({ path, bytes }): [string, number][] =>
    typeof path === "string" && typeof bytes === "number" && bytes >= 0 ? [[path, bytes]] : [],
  );
  if (sizes.length === 0) throw refuse(`bundle.json in the archive “${archive}” names no files`);
  return new Map(sizes);
}
