// Saves a gallery of own pictures as a bundle, in one archive: what `akin export` writes of a run, but for what only an
// evaluation knows. The files of its encoders are those of the bundle that they came from.

import { zipSync, type Zippable } from "fflate";
import { saveFile } from "../chart-file.js";
import { failure } from "../failure.js";
import type { EvaluationConfig, FileEntry, Report } from "../messages/engine.js";
import type { Manifest } from "../protocol.js";
import { session } from "../session.js";
import type { OwnGallery } from "./own-gallery.js";
import { OwnThumbnails } from "./thumbnails.js";

type Bytes = Uint8Array<ArrayBuffer>;

/** Where the files of the gallery are; those of the encoders keep their paths. */
const FOLDER = "own";

export async function exportBundle(gallery: OwnGallery): Promise<void> {
  // The files of the encoders are read from the bundle that is open.
  await session.open(gallery.source);
  const files = new Map<string, Bytes>();
  const manifest = contentsOf(gallery, (path, bytes) => {
    files.set(path, bytes);
    return path;
  });
  for (const [index, sheet] of gallery.sheets.entries())
    files.set(sheetPath(index), new Uint8Array(await sheet.arrayBuffer()));
  for (const path of filesOfEncoders(gallery)) {
    files.set(path, (await session.call("file", { path })) as Bytes);
  }
  const entries: FileEntry[] = [];
  for (const [path, bytes] of files) entries.push({ path, bytes: bytes.length, sha256: await sha256(bytes) });
  const listed = { ...manifest, files: entries };
  const digest = await sha256(new TextEncoder().encode(canonical(listed)));
  files.set("bundle.json", new TextEncoder().encode(JSON.stringify({ ...listed, digest }, null, 2)));
  const name = folderName(gallery.name);
  const inside = Object.fromEntries([...files].map(([path, bytes]): [string, Bytes] => [`${name}/${path}`, bytes]));
  // Weights, embeddings and pictures hardly become smaller.
  const archive = zipSync(inside satisfies Zippable, { level: 0 });
  saveFile(new Blob([archive], { type: "application/zip" }), `${name}.zip`);
}

const sheetPath = (index: number) => `${FOLDER}/thumbnails-${index}.jpg`;

/** The manifest but for its files and digest. `add` takes the files that are made of numbers. */
function contentsOf(gallery: OwnGallery, add: (path: string, bytes: Bytes) => string) {
  const { base, name, files, bundle, taxonomy } = gallery;
  const { levels } = bundle.collection;
  // A bundle has at least one level. Without folders every picture is a class of its own, named after its file.
  const tree =
    levels.length > 0
      ? { levels: [...levels], classes: taxonomy.classes, parents: taxonomy.parents }
      : { levels: ["picture"], classes: [unique(files)], parents: [[]] };
  const labels = levels.length > 0 ? taxonomy.labels : files.map((_, item) => item);
  const encoders = [...gallery.embedded].map(([index, embeddings]) => {
    const path = add(`${FOLDER}/${index}.f32`, bytesOf(embeddings));
    return encoderOf(base, index, path, tree.levels, files.length);
  });
  const uses = (is: (entry: (typeof encoders)[number]) => unknown) => encoders.some((entry) => is(entry));
  const requires = [...(uses(({ onnx }) => onnx) ? ["onnx"] : []), ...(uses(({ parity }) => parity) ? ["parity"] : [])];
  return {
    format: "akin-bundle",
    version: 1,
    ...(requires.length > 0 ? { requires } : {}),
    title: name,
    description: `${files.length.toLocaleString("en")} pictures, embedded in a browser with the encoders of “${base.title}”.`,
    licence: "",
    model_card: `A gallery that was made in a browser. It was not evaluated. Its encoders come from the bundle “${base.title}”, of which this is said:\n\n${base.model_card}`,
    taxonomy: tree,
    gallery: { count: files.length },
    queries: { count: 0 },
    labels: add(`${FOLDER}/labels.bin`, bytesOf(Uint32Array.from(labels))),
    thumbnails: { ...OwnThumbnails.shape, sheets: gallery.sheets.map((_, index) => sheetPath(index)) },
    evaluation_config: CONFIG,
    ...(base.parity_pictures ? { parity_pictures: base.parity_pictures } : {}),
    encoders,
  };
}

/** An encoder over the new gallery. What was measured on the other one is left out. */
function encoderOf(base: Manifest, index: number, path: string, levels: string[], count: number) {
  const entry = base.encoders[index];
  if (!entry) throw failure("unexpected", `the bundle has no encoder ${index}`, "reload the page");
  const { name, description, family, architecture, preprocessing, dimension, weights, parity, onnx } = entry;
  const licence = entry.licence ?? base.licence;
  const similarity = entry.report?.config.similarity ?? CONFIG.similarity;
  return withoutEmpty({
    name,
    description,
    family,
    architecture,
    preprocessing,
    dimension,
    weights,
    gallery_embeddings: path,
    query_embeddings: null,
    parity,
    onnx,
    licence: licence === "" ? undefined : licence,
    report: withoutScores({ ...CONFIG, similarity }, levels, count),
  });
}

/** The default of `akin eval`. */
const CONFIG: EvaluationConfig = {
  metrics: ["h_ap", "ndcg", "asi", "ap", "map_at_r", "recall@1"],
  relevance: { kind: "hierarchical_ap", alpha: 1 },
  ties: "stable",
  count_query: false,
  similarity: "cosine",
  block: 64,
};

/** The report of an evaluation that no query took part in. */
function withoutScores(config: EvaluationConfig, levels: string[], count: number): Report {
  const none = (...metrics: string[]) => ({ queries: 0, ...Object.fromEntries(metrics.map((name) => [name, null])) });
  return {
    config,
    queries: 0,
    ranked: count - 1,
    overall: none("h_ap", "ndcg", "asi"),
    levels: levels.map((name) => ({ name, ...none("ap", "map_at_r", "recall@1") })) as Report["levels"],
  };
}

/** Without fields that are not there; `query_embeddings` stays null. */
function withoutEmpty<T extends { query_embeddings: null }>(entry: T): T {
  const isThere = ([key, value]: [string, unknown]) =>
    key === "query_embeddings" || (value !== undefined && value !== null);
  return Object.fromEntries(Object.entries(entry).filter(isThere)) as T;
}

/** What a bundle with these encoders needs of the other: weights, what proves that they work, and licence texts. */
function filesOfEncoders({ base, embedded }: OwnGallery): Set<string> {
  const encoders = base.encoders.filter((_, encoder) => embedded.has(encoder));
  const named = encoders.flatMap(({ weights, parity, onnx }) => [weights, parity?.embeddings, onnx?.file]);
  const licences = base.files.map(({ path }) => path).filter((path) => /licen[cs]e|notice/i.test(path));
  const paths = [...named, ...(base.parity_pictures ?? []), ...licences];
  return new Set(paths.filter((path) => typeof path === "string"));
}

const bytesOf = (numbers: Float32Array | Uint32Array): Bytes =>
  new Uint8Array(numbers.buffer as ArrayBuffer, numbers.byteOffset, numbers.byteLength);

/** The names, each once: “1.jpg”, “1.jpg (2)”. */
function unique(names: readonly string[]): string[] {
  const seen = new Map<string, number>();
  return names.map((name) => {
    const times = (seen.get(name) ?? 0) + 1;
    seen.set(name, times);
    return times === 1 ? name : `${name} (${times})`;
  });
}

/** A name for a folder on every system. */
const folderName = (title: string): string =>
  title
    .normalize("NFKD")
    .replace(/[^\w.-]+/g, "-")
    .replace(/^[-.]+|[-.]+$/g, "")
    .toLowerCase() || "gallery";

async function sha256(bytes: Bytes): Promise<string> {
  const { subtle } = crypto as { subtle?: SubtleCrypto };
  if (!subtle)
    throw failure(
      "store",
      "the browser computes the checksums of a bundle only for pages with HTTPS or on this machine",
      "open the page by HTTPS, or at 127.0.0.1",
    );
  const digest = new Uint8Array(await subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** JSON in the form of RFC 8785, of which the digest is made. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, value]) => `${JSON.stringify(key)}:${canonical(value)}`).join(",")}}`;
}
