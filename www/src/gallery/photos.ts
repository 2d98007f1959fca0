// The photos of a folder that the reader has chosen or dropped.

/** Folders below this depth count as the deepest level. */
const MAX_DEPTH = 5;

export interface Photo {
  readonly file: File;
  /** The names of the folders around it, from the chosen folder down. */
  readonly folders: readonly string[];
}

export interface Folder {
  readonly name: string;
  /** Sorted by path. */
  readonly photos: readonly Photo[];
  /** The number of files that are no JPEG, PNG, WebP, GIF, BMP, AVIF or HEIC. */
  readonly others: number;
  /** The files of the bundle that the folder holds, by their paths in it. Null if it is a folder of photos. */
  readonly bundle: ReadonlyMap<string, File> | null;
}

const isPhoto = ({ name, type }: File) =>
  /^image\/(jpeg|png|webp|gif|bmp|avif|heic|heif)$/.test(type) ||
  /\.(jpe?g|png|webp|gif|bmp|avif|heic|heif)$/i.test(name);

/** Hidden files, such as those that systems keep in every folder, are not counted. */
const isHidden = (path: readonly string[]) => path.some((name) => name.startsWith("."));

function folderOf(name: string, files: readonly Photo[]): Folder {
  const shown = files.filter(({ file, folders }) => !isHidden([...folders, file.name]));
  const path = ({ file, folders }: Photo) => [...folders, file.name].join("/");
  const order = new Intl.Collator("en", { numeric: true });
  const photos = shown.filter(({ file }) => isPhoto(file)).sort((a, b) => order.compare(path(a), path(b)));
  return {
    name,
    photos,
    others: shown.length - photos.length,
    bundle: bundleIn(shown),
  };
}

/** The bundle in the folder that holds a `bundle.json`, the one nearest to the top. */
function bundleIn(files: readonly Photo[]): ReadonlyMap<string, File> | null {
  const manifests = files.filter(({ file }) => file.name === "bundle.json");
  const [manifest] = manifests.sort((a, b) => a.folders.length - b.folders.length);
  if (!manifest) return null;
  const above = manifest.folders;
  const inside = files.filter(({ folders }) => above.every((name, index) => folders[index] === name));
  return new Map(inside.map(({ file, folders }) => [[...folders.slice(above.length), file.name].join("/"), file]));
}

/** The photos of an input that takes a folder, or several files. */
export function fromInput(files: Iterable<File>): Folder {
  const all = [...files];
  const [root] = (all[0]?.webkitRelativePath ?? "").split("/");
  const photos = all.map((file) => ({ file, folders: file.webkitRelativePath.split("/").slice(1, -1) }));
  return folderOf(root || "Your pictures", photos);
}

export const isArchive = ({ name, type }: File): boolean => /zip/.test(type) || /\.zip$/i.test(name);

/** The bundle in an archive. What reads archives is loaded with the first one. */
export async function fromArchive(archive: File): Promise<Folder> {
  const { readArchive } = await import("./archive.js");
  const bundle = await readArchive(archive);
  return { name: archive.name.replace(/\.zip$/i, ""), photos: [], others: 0, bundle };
}

/** The folders among dropped things, or all of them if there are several files. Null for a single file but an archive. */
export function fromDrop(transfer: DataTransfer): Promise<Folder> | null {
  const [file] = transfer.files;
  if (file && transfer.files.length === 1 && isArchive(file)) return fromArchive(file);
  // The entries must be taken before the event has ended.
  const entries = [...transfer.items].flatMap((item) => item.webkitGetAsEntry?.() ?? []);
  const [first] = entries;
  if (!first || (entries.length === 1 && !first.isDirectory)) return null;
  return readEntries(entries);
}

async function readEntries(entries: readonly FileSystemEntry[]): Promise<Folder> {
  const photos: Photo[] = [];
  const visit = async (entry: FileSystemEntry, folders: readonly string[]): Promise<void> => {
    if (entry.name.startsWith(".")) return;
    if (entry.isFile) {
      const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
      photos.push({ file, folders });
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    const inside = [...folders, entry.name];
    // A reader returns some of the entries at a time, and none at the end.
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
      if (some.length === 0) break;
      for (const child of some) await visit(child, inside);
    }
  };
  for (const entry of entries) await visit(entry, []);
  const [first] = entries;
  if (entries.length > 1 || !first) return folderOf("Your pictures", photos);
  // The name of the only folder is the name of the gallery.
  return folderOf(
    first.name,
    photos.map(({ file, folders }) => ({ file, folders: folders.slice(1) })),
  );
}

/**
 * The labels that the folders give: level names, and a label per photo and level, row by row; an empty one is unknown.
 * Folders around all photos tell nothing and are left out. Without levels the photos
 * have no labels.
 */
export function folderLabels(photos: readonly Photo[], root: string): { levels: string[]; rows: string[] } {
  const [first] = photos;
  let around = 0;
  while (
    first &&
    around < first.folders.length &&
    photos.every((photo) => photo.folders[around] === first.folders[around])
  ) {
    around++;
  }
  const paths = photos.map(({ folders }) => folders.slice(around));
  const depth = Math.min(MAX_DEPTH, Math.max(0, ...paths.map(({ length }) => length)));
  const names = depth <= 3 ? ["top folder", "folder", "subfolder"] : [];
  const start = depth === 3 ? 0 : 1;
  const levels = Array.from({ length: depth }, (_, level) => names[start + level] ?? `folder ${level + 1}`);
  const rows = paths.flatMap((path) => levels.map((_, level) => path[level] ?? (level === 0 ? root : "")));
  return { levels, rows };
}
