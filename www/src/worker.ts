// The engine's worker: downloads the bundle once, chooses a back end, and answers one request after
// another. It takes requests from the start; they wait until the engine has loaded.
//
// WebGPU is tried first and must pass the encoder's parity check. After any failure of WebGPU (no
// adapter, a lost device, a panic, a wrong embedding, no answer) the worker starts an engine on the
// CPU with the bytes already downloaded, and tells the page why.

import { download, readFrom, type Progress, type ReadFile } from "./download.js";
import type { Engine, EngineModule } from "./engine.js";
import { failure, toFailure, type Failure } from "./failure.js";
import { serveMap } from "./map/gpu-server.js";
import type {
  Backend,
  Calls,
  EncoderEntry,
  Manifest,
  OwnRows,
  Phase,
  ProgressState,
  Reply,
  Request,
  Running,
  Searched,
} from "./protocol.js";
import type { Embedded, ParityCheck } from "./messages/engine.js";
import type { Network } from "./onnx.js";
import { pageFile } from "./page-file.js";
import { pictureBytes } from "./picture-file.js";

interface Scope {
  readonly name: string;
  readonly location: Location;
  postMessage(message: Reply, transfer?: Transferable[]): void;
  addEventListener(type: "message", listener: (event: MessageEvent<Request>) => void): void;
  addEventListener(type: "error", listener: (event: ErrorEvent) => void): void;
  addEventListener(type: "unhandledrejection", listener: (event: PromiseRejectionEvent) => void): void;
}
const scope = self as unknown as Scope;

const ENGINE = pageFile("akin-web.js");
const ENGINE_CODE = pageFile("akin-web_bg.wasm");

/** After this time without an answer the GPU counts as failed. */
const GPU_TIMEOUT_MS = 120_000;

/** The codes of failures that another back end would not prevent. */
const NOT_THE_DEVICE = new Set([
  "bundle",
  "config",
  "embeddings",
  "image",
  "memory",
  "network",
  "parity",
  "taxonomy",
  "weights",
]);

/** The codes of failures that files of another bundle cause. */
const OF_FILES = new Set(["bundle", "embeddings", "network", "weights"]);

let base = "";
/** Reads the files of a bundle that is on no server. */
let readOwn: ReadFile | null = null;
/** Whether pictures are embedded. A notebook only ranks the items of a bundle, and needs no network for that. */
let embeds = true;
let manifest: Manifest | null = null;
let code: Promise<WebAssembly.Module> | null = null;
let engine: Engine | null = null;
/** The memory of the instance that `engine` belongs to. */
let memory: WebAssembly.Memory | null = null;
let running: Running = { backend: "cpu", reason: "", adapter: null };
let backendIsForced = false;
let engineStarts = 0;
const downloads = new Map<string, Promise<Uint8Array>>();
const sheets = new Map<number, Promise<Uint8Array>>();
const loadedEncoders = new Set<number>();
/** The networks of encoders that are ONNX files. */
const networks = new Map<number, Network>();
/** The gallery of the reader's own pictures, for the next engine after a failure. */
let ownRows: OwnRows | null = null;
const ownEmbeddings = new Map<number, Float32Array>();

// --- Requests, one after another --------------------------------------------------------------

let queue: Promise<void> = Promise.resolve();
scope.addEventListener("message", ({ data }) => {
  downloadAhead(data);
  queue = queue.then(() => answer(data));
});

/** Starts the downloads of a request, which need no engine, before its turn. Its turn reports their failures. */
function downloadAhead({ kind, params }: Request): void {
  if (!manifest) return;
  const files = kind === "sheet" ? [sheet(params.index)] : kind === "encoder" ? encoderDownloads(params.index) : [];
  for (const file of files) file.catch(() => {});
}

async function answer(request: Request): Promise<void> {
  try {
    const result = await handle(request);
    scope.postMessage({ id: request.id, result }, transferables(result));
  } catch (error) {
    const caught = failureOf(error);
    const replaced = failure(
      "replaced",
      "the gallery was replaced on the server while it was open",
      "reload the page to open the new one",
    );
    scope.postMessage({ id: request.id, failure: (await isReplaced(caught)) ? replaced : caught });
  }
}

/** Whether the server has another bundle now than the one that is open, which explains a failure. */
async function isReplaced({ code }: Failure): Promise<boolean> {
  if (readOwn || !OF_FILES.has(code)) return false;
  const opened = await downloads.get("bundle.json")?.catch(() => null);
  if (!opened) return false;
  const current = await download(`${base}bundle.json`, null, () => {}).catch(() => null);
  return (
    current !== null && (current.length !== opened.length || current.some((byte, index) => byte !== opened[index]))
  );
}

async function handle(request: Request): Promise<Calls[keyof Calls]["result"]> {
  switch (request.kind) {
    case "open":
      return open(request.params);
    case "encoder":
      return withFallback(() => loadEncoder(request.params.index));
    case "embed":
      return withFallback(() => embed(request.params.encoder, request.params.image));
    case "look":
      return withFallback(async () => {
        const { encoder, query, item } = request.params;
        return rejectOnCrash(currentEngine().look(encoder, query, item));
      });
    case "occlude":
      return withFallback(async () => {
        const { encoder, image, embedding, other, row } = request.params;
        const vectors = [Float32Array.from(embedding), Float32Array.from(other)] as const;
        return rejectOnCrash(currentEngine().occlude(encoder, image, ...vectors, row));
      });
    case "rank":
      return withFallback(async () => rank(request.params));
    case "search":
      return withFallback(async () => {
        const { image, ...params } = request.params;
        const embedded = await embed(params.encoder, image);
        return { embedded, ranked: rank({ ...params, item: null, embedding: embedded.embedding }) };
      });
    case "startOwn":
      return withFallback(async () => {
        ownRows = request.params;
        ownEmbeddings.clear();
        return currentEngine().start_own_gallery(ownRows.levels, ownRows.rows);
      });
    case "embedOwn":
      return withFallback(async () => {
        const { encoder, embeddings } = request.params;
        currentEngine().embed_own_gallery(encoder, embeddings);
        ownEmbeddings.set(encoder, embeddings);
        return null;
      });
    case "map": {
      const { canvas, port, tile } = request.params;
      serveMap(currentEngine().map(canvas, tile), port);
      return null;
    }
    case "files":
      return performance.getEntriesByType("resource").map(({ name }) => name);
    case "sheet": {
      const { index } = request.params;
      const bytes = await sheet(index).finally(() => sheets.delete(index));
      currentEngine().verify(openManifest().thumbnails.sheets[index] ?? "", bytes);
      return bytes;
    }
    case "file": {
      const { path } = request.params;
      const bytes = await load(path, () => {});
      currentEngine().verify(path, bytes);
      return bytes;
    }
  }
}

async function embed(encoder: number, image: Blob): Promise<Embedded> {
  const bytes = await pictureBytes(image);
  return rejectOnCrash(currentEngine().embed(encoder, bytes));
}

function rank({ encoder, k, item, embedding, labels, own }: Calls["rank"]["params"]): Searched {
  const vector = embedding ? Float32Array.from(embedding) : undefined;
  const started = performance.now();
  const ranked = currentEngine().rank(encoder, k, vector, item ?? undefined, labels ?? undefined, own);
  return { ...ranked, search_ms: performance.now() - started };
}

/** The buffers of a result, which leave the worker without a copy. */
function transferables(result: Calls[keyof Calls]["result"]): Transferable[] {
  return result instanceof Uint8Array ? [result.buffer] : [];
}

// A killed worker sends no message. So it holds a lock of its own name, which the waiting page gets
// when the worker is gone. (Where the browser has no locks, the page notices only errors.)
void navigator.locks?.request(scope.name, () => {
  scope.postMessage({ alive: true });
  return new Promise(() => {});
});

// --- Opening a bundle -------------------------------------------------------------------------

async function open(params: Calls["open"]["params"]): Promise<Calls["open"]["result"]> {
  base = params.bundle;
  readOwn = params.files && readFrom(params.files);
  embeds = !(params.files instanceof MessagePort);
  backendIsForced = params.backend !== null;
  code ??= downloadCode();
  const [json] = await Promise.all([downloadOnce("bundle.json", "gallery"), code]);
  const first = firstBackend(params.backend, params.cpuReason);
  running = first;
  // After a fallback the engine has been started already.
  await withFallback(async () => engine ?? startEngine(first));
  // The engine has checked format, version, digest, paths and counts.
  manifest = JSON.parse(new TextDecoder().decode(json)) as Manifest;
  const labels = await downloadOnce(manifest.labels, "gallery");
  currentEngine().load_labels(labels);
  return { manifest, labels: new Uint32Array(labels.slice().buffer), running };
}

async function downloadCode(): Promise<WebAssembly.Module> {
  const report = reporter("code", "akin-web_bg.wasm");
  const bytes = await download(ENGINE_CODE, null, report);
  const module = await WebAssembly.compile(bytes as Uint8Array<ArrayBuffer>);
  report(bytes.length, bytes.length, "done");
  return module;
}

/** The back end to try first: the one that the reader chose, else WebGPU, unless it has failed before. */
function firstBackend(chosen: Backend | null, cpuReason: string | null): Running {
  if (chosen !== null) return { backend: chosen, reason: "Chosen by you.", adapter: null };
  if (cpuReason !== null) return { backend: "cpu", reason: cpuReason, adapter: null };
  return { backend: "webgpu", reason: "The graphics adapter passed its checks.", adapter: null };
}

/** Starts an engine on `next` and loads everything that the engine before it had. */
async function startEngine(next: Running): Promise<void> {
  const start = engineStarts + 1;
  // A module that has panicked stays broken, so every engine has an instance of its own.
  const module = (await import(start > 1 ? `${ENGINE}#${start}` : ENGINE)) as EngineModule;
  if (code === null) throw failure("unexpected", "the engine's code is not loaded", "reload the page");
  const exports = await module.default({ module_or_path: await code });
  exports.__wasm_call_ctors();
  ({ memory } = exports);
  try {
    engine = await rejectOnCrash(module.Engine.create(next.backend, (reason) => onDeviceLost(start, reason)));
    engineStarts = start;
  } catch (error) {
    // An instance that found no device is still whole.
    if (toFailure(error).code !== "device") engineStarts = start;
    throw error;
  }
  engine.open(await downloadOnce("bundle.json", "gallery"));
  if (manifest) engine.load_labels(await downloadOnce(manifest.labels, "gallery"));
  for (const index of loadedEncoders) await loadEncoder(index);
  if (ownRows) engine.start_own_gallery(ownRows.levels, ownRows.rows);
  for (const [encoder, embeddings] of ownEmbeddings) engine.embed_own_gallery(encoder, embeddings);
  running = { ...next, adapter: engine.adapter() };
}

async function loadEncoder(index: number): Promise<null> {
  const entry = openManifest().encoders[index];
  if (!entry) throw failure("config", `the bundle has no encoder ${index}`, "choose one of its encoders");
  const files = encoderFiles(entry);
  const network = await openOnnx(index, entry, await files.network);
  currentEngine().load_encoder(index, await files.weights, await files.gallery, await files.queries, network?.run);
  const report = reporter("warm-up", entry.name);
  report(0, null);
  await checkParity(index, entry, await files.trainers, await Promise.all(files.pictures));
  loadedEncoders.add(index);
  report(0, null, "done");
  return null;
}

/** The network of an encoder that is an ONNX file, on the back end that runs, in place of an earlier one. */
async function openOnnx(index: number, { name, onnx }: EncoderEntry, file?: Uint8Array): Promise<Network | undefined> {
  await networks.get(index)?.release();
  networks.delete(index);
  if (!onnx || !file) return undefined;
  currentEngine().verify(onnx.file, file);
  const { openNetwork } = await import("./onnx.js");
  const report = reporter("code", "onnxruntime");
  const done = { bytes: 0 };
  const network = await rejectOnCrash(
    openNetwork(name, onnx, file, running.backend, (loaded, total, state) => {
      done.bytes = loaded;
      report(loaded, total, state);
    }),
  );
  if (done.bytes > 0) report(done.bytes, done.bytes, "done");
  networks.set(index, network);
  // ONNX Runtime has a copy. If the engine starts again, the browser still has the file.
  downloads.delete(onnx.file);
  return network;
}

/**
 * Embeds the parity pictures, which also prepares the device for the reader's first picture, and tells the page how far
 * the embeddings agree with the trainer's. After the first time on a back end one picture is enough.
 */
async function checkParity(
  index: number,
  { name, parity }: EncoderEntry,
  trainers: Uint8Array | undefined,
  pictures: readonly Uint8Array[],
): Promise<void> {
  // Embeddings alone have no network, and a notebook loads none.
  if (!parity || !trainers) return;
  const { backend } = running;
  const key = new URL(`parity/${openManifest().digest}/${index}/${backend}`, scope.location.href).href;
  const earlier = await remembered(key);
  const rows: number[] = [];
  for (const picture of earlier ? pictures.slice(0, 1) : pictures)
    rows.push(...(await rejectOnCrash(currentEngine().embed(index, picture))).embedding);
  const now = currentEngine().check_parity(index, Float32Array.from(rows), trainers);
  const check = earlier && now.passed ? earlier : now;
  scope.postMessage({ parity: { ...check, encoder: name, backend } });
  if (check.passed) {
    if (!earlier) await remember(key, check);
    return;
  }
  throw failure(
    // Below its bound on the CPU, no other back end is left.
    backend === "webgpu" ? "device" : "parity",
    `encoder ${name} embeds pictures otherwise than its trainer did (cosine ${check.cosine.toFixed(4)}, and at least ${check.bound.toFixed(4)} is needed)`,
    backend === "webgpu" ? "use another back end, with ?backend=cpu" : "use another browser, or another encoder",
  );
}

/** Where passed parity checks are remembered; `offline.ts` empties it. */
const CHECKS = "akin-parity";

async function remembered(key: string): Promise<ParityCheck | null> {
  try {
    const response = await (await caches.open(CHECKS)).match(key);
    return response ? ((await response.json()) as ParityCheck) : null;
  } catch {
    // Some browsers have no cache in private windows.
    return null;
  }
}

async function remember(key: string, check: ParityCheck): Promise<void> {
  await caches
    .open(CHECKS)
    .then((cache) => cache.put(key, new Response(JSON.stringify(check))))
    .catch(() => {});
}

// --- When the back end fails ------------------------------------------------------------------

/** After a trap, an instance that cannot grow by this many pages (256 MB) most likely ran out of memory. */
const SPARE_PAGES = 4096;

function canGrow(): boolean {
  try {
    memory?.grow(SPARE_PAGES);
    return true;
  } catch {
    return false;
  }
}

/** As `toFailure`. An engine whose memory ran out only traps, without a reason. */
function failureOf(error: unknown): Failure {
  const caught = toFailure(error);
  if (caught.code !== "crash" || canGrow()) return caught;
  return failure(
    "memory",
    "the browser has no memory left for the engine",
    "it restarts by itself; close other tabs and programs, or take a smaller picture, and try again",
  );
}

/** Runs `work`. If the GPU fails, moves to the CPU and runs it again. */
async function withFallback<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const caught = failureOf(error);
    const hasTrapped = toFailure(error).code === "crash";
    if (hasTrapped && caught.code === "memory" && engine) {
      // Without memory for another instance, the next request tries again.
      await switchTo(running).catch(() => {});
    }
    if (NOT_THE_DEVICE.has(caught.code)) throw caught;
    if (running.backend === "webgpu" && !backendIsForced) {
      await switchTo(cpuAfter(caught));
      return work();
    }
    if (caught.code === "crash" && engine) await switchTo(running);
    throw caught;
  }
}

const cpuAfter = ({ message }: Failure): Running => ({
  backend: "cpu",
  reason: `WebGPU was tried first, but ${message}.`,
  adapter: null,
});

async function switchTo(next: Running): Promise<void> {
  running = next;
  await startEngine(next);
  scope.postMessage({ running });
}

/** Replaces the engine whose device is lost: the running request at once, which then runs again, or else in turn. */
function onDeviceLost(start: number, reason: string): void {
  const lost = failure(
    "device",
    `the graphics device was lost${reason === "" ? "" : `: ${reason.replace(/\.$/, "")}`}`,
    "use ?backend=cpu",
  );
  if (start === engineStarts) rejectRunning?.(lost);
  // If no other engine starts, the next request says why.
  queue = queue.then(() => replaceLost(start, lost)).catch(() => {});
}

async function replaceLost(start: number, lost: Failure): Promise<void> {
  // A request may have noticed first.
  if (start !== engineStarts) return;
  // The reader's choice of WebGPU holds: the new engine asks for another device.
  await switchTo(backendIsForced ? running : cpuAfter(lost));
}

/** Rejects the running `rejectOnCrash`: after a panic inside a future, its promise never ends by itself. */
let rejectRunning: ((failure: Failure) => void) | null = null;
scope.addEventListener("error", (event) => onUncaught(event, event.error));
scope.addEventListener("unhandledrejection", (event) => onUncaught(event, event.reason));

function onUncaught(event: Event, error: unknown): void {
  if (!rejectRunning) return;
  event.preventDefault();
  rejectRunning(toFailure(error));
}

/** `work`, or the failure of the worker or of the GPU during it. */
async function rejectOnCrash<T>(work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const failed = new Promise<never>((_, reject) => {
    rejectRunning = reject;
    if (running.backend === "webgpu") {
      timer = setTimeout(
        () => reject(failure("device", "the graphics adapter has not answered for two minutes", "use ?backend=cpu")),
        GPU_TIMEOUT_MS,
      );
    }
  });
  try {
    return await Promise.race([work, failed]);
  } finally {
    rejectRunning = null;
    clearTimeout(timer);
  }
}

// --- Files ------------------------------------------------------------------------------------

function currentEngine(): Engine {
  if (!engine) throw failure("unexpected", "the engine has not started", "reload the page");
  return engine;
}

function openManifest(): Manifest {
  if (!manifest) throw failure("bundle", "no bundle is open", "reload the page");
  return manifest;
}

const sizeOf = (path: string): number | null => manifest?.files.find((file) => file.path === path)?.bytes ?? null;

/** The files of an encoder. Embeddings alone have no weights and no parity check, and only some have an ONNX file and stored queries. */
function encoderFiles(entry: EncoderEntry) {
  const some = (path: string | null | undefined, phase: Phase) =>
    path ? downloadOnce(path, phase) : Promise.resolve(undefined);
  const parityPictures = (embeds && openManifest().parity_pictures) || [];
  return {
    network: some(embeds ? entry.onnx?.file : null, "weights"),
    weights: some(embeds ? entry.weights : null, "weights"),
    gallery: downloadOnce(entry.gallery_embeddings, "gallery"),
    queries: some(entry.query_embeddings, "gallery"),
    trainers: some(embeds ? entry.parity?.embeddings : null, "gallery"),
    pictures: parityPictures.map((path) => downloadOnce(path, "gallery")),
  };
}

/** The downloads of an encoder. */
function encoderDownloads(index: number): Promise<unknown>[] {
  const entry = openManifest().encoders[index];
  return entry ? Object.values(encoderFiles(entry)).flat() : [];
}

/** The bytes of a file of the bundle, from the server or from where the page has it. */
function load(path: string, progress: Progress): Promise<Uint8Array> {
  return readOwn ? readOwn(path, progress) : download(base + path, sizeOf(path), progress);
}

/** The download of a sheet of thumbnails. The page keeps the sheet; the worker does not. */
function sheet(index: number): Promise<Uint8Array> {
  const path = openManifest().thumbnails.sheets[index] ?? "";
  const bytes = sheets.get(index) ?? load(path, () => {});
  sheets.set(index, bytes);
  return bytes;
}

/** A file of the bundle, downloaded once. A failed download can be tried again. */
function downloadOnce(path: string, phase: Phase): Promise<Uint8Array> {
  const known = downloads.get(path);
  if (known) return known;
  const report = reporter(phase, path);
  const bytes = load(path, report).then(
    (bytes) => {
      report(bytes.length, bytes.length, "done");
      return bytes;
    },
    (error: unknown) => {
      downloads.delete(path);
      if (path !== "bundle.json") throw error;
      throw failure(
        "bundle",
        `there is no bundle at ${base}: ${toFailure(error).message}`,
        "write a bundle with `akin export RUN --out BUNDLE` and open it with `akin serve BUNDLE`, or name its folder in the address of this page with ?bundle=PATH",
      );
    },
  );
  downloads.set(path, bytes);
  return bytes;
}

/** Returns a function that reports the progress of `path` to the page, at most every 60 ms. */
function reporter(phase: Phase, path: string) {
  let last = 0;
  return (bytes: number, total: number | null, state: ProgressState = "running") => {
    const now = performance.now();
    if (state === "running" && bytes > 0 && now - last < 60) return;
    last = now;
    scope.postMessage({ progress: phase, path, loaded: bytes, total, state });
  };
}
