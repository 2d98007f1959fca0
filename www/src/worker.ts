// The engine's worker: fetches the bundle once, chooses a back end, and answers one question after
// another. It listens from its first line on: questions wait in line until the engine is there.
//
// WebGPU is tried first and must pass the encoder's self-test. Whatever goes wrong with it (no
// adapter, a panic, a wrong vector, no answer) moves everything to the CPU, with the bytes already
// here, and the reason is kept for the reader.

import { download } from "./download.js";
import { failure, toFailure, type Failure } from "./failure.js";
import type { Backend, Calls, Engine, EngineModule, Manifest, Phase, Reply, Request, Running, SelfTest } from "./protocol.js";

interface Scope {
  readonly name: string;
  postMessage(message: Reply, transfer?: Transferable[]): void;
  addEventListener(type: "message", listener: (event: MessageEvent<Request>) => void): void;
  addEventListener(type: "error", listener: (event: ErrorEvent) => void): void;
  addEventListener(type: "unhandledrejection", listener: (event: PromiseRejectionEvent) => void): void;
}
const scope = self as unknown as Scope;

/** The engine is a neighbour of the page, one folder up from its scripts. */
const ENGINE = new URL("../akin-web.js", import.meta.url);
const ENGINE_CODE = new URL("../akin-web_bg.wasm", import.meta.url);

/** A GPU that has not answered for so long will not. */
const PATIENCE_MS = 120_000;

/** Faults that another back end cannot mend. */
const NOT_THE_DEVICE = new Set(["bundle", "config", "embeddings", "image", "network", "taxonomy", "weights"]);

let base = "";
let manifest: Manifest | null = null;
let code: Promise<WebAssembly.Module> | null = null;
let engine: Engine | null = null;
let running: Running = { backend: "cpu", reason: "" };
let forced = false;
let starts = 0;
const kept = new Map<string, Promise<Uint8Array>>();
const sheets = new Map<number, Promise<Uint8Array>>();
const loaded = new Set<number>();

// --- Questions, one after another -------------------------------------------------------------

let line: Promise<void> = Promise.resolve();
scope.addEventListener("message", ({ data }) => {
  fetchAhead(data);
  line = line.then(() => answer(data));
});

/** Downloads need no engine, so they do not wait in line. Their faults are told when it is their turn. */
function fetchAhead({ kind, send }: Request): void {
  if (!manifest) return;
  const files = kind === "sheet" ? [sheet(send.index)] : kind === "encoder" ? encoderFiles(send.index) : [];
  for (const file of files) file?.catch(() => {});
}

async function answer(request: Request): Promise<void> {
  try {
    const back = await handle(request);
    scope.postMessage({ id: request.id, back }, transferables(back));
  } catch (error) {
    scope.postMessage({ id: request.id, failure: toFailure(error) });
  }
}

async function handle(request: Request): Promise<Calls[keyof Calls]["back"]> {
  switch (request.kind) {
    case "open":
      return open(request.send);
    case "encoder":
      return withFallback(() => loadEncoder(request.send.index));
    case "embed":
      return withFallback(async () => guard(need().embed(request.send.encoder, request.send.image)));
    case "rank":
      return withFallback(async () => {
        const { encoder, k, item, embedding, labels } = request.send;
        const asked = embedding ?? need().stored(encoder, item ?? 0);
        return need().rank(encoder, asked, k, item ?? undefined, labels ?? undefined);
      });
    case "sheet": {
      const { index } = request.send;
      const bytes = await sheet(index).finally(() => sheets.delete(index));
      need().verify(opened().thumbnails.sheets[index] ?? "", bytes);
      return bytes;
    }
  }
}

/** Large results leave the worker without a copy. */
function transferables(back: Calls[keyof Calls]["back"]): Transferable[] {
  return back instanceof Uint8Array ? [back.buffer] : [];
}

// A worker that is killed says nothing. It holds a lock of its own name, which the browser gives to
// the waiting page when it is gone. (Where there are no locks, only errors are noticed.)
void navigator.locks?.request(scope.name, () => {
  scope.postMessage({ alive: true });
  return new Promise(() => {});
});

// --- Opening a bundle -------------------------------------------------------------------------

async function open(send: Calls["open"]["send"]): Promise<Calls["open"]["back"]> {
  base = send.bundle;
  forced = send.backend !== null;
  code ??= fetchCode();
  const [json] = await Promise.all([keep("bundle.json", "gallery"), code]);
  running = await choose(send.backend, send.avoid);
  // After a fallback the engine is there already.
  await withFallback(async () => engine ?? start(running));
  // The engine has checked it: format, version, digest, paths, counts.
  manifest = JSON.parse(new TextDecoder().decode(json)) as Manifest;
  const labels = await keep(manifest.labels, "gallery");
  need().load_labels(labels);
  return { manifest, labels: new Uint32Array(labels.slice().buffer), running };
}

async function fetchCode(): Promise<WebAssembly.Module> {
  const report = reporter("code", "akin-web_bg.wasm");
  const bytes = await download(ENGINE_CODE.href, null, report);
  const module = await WebAssembly.compile(bytes as Uint8Array<ArrayBuffer>);
  report(bytes.length, bytes.length, true);
  return module;
}

interface Gpu {
  requestAdapter(): Promise<{ features: { has(name: string): boolean } } | null>;
}

/** Which back end to start, from what the reader wants and the browser has. */
async function choose(wanted: Backend | null, avoid: string | null): Promise<Running> {
  if (wanted === "cpu") return { backend: "cpu", reason: "Chosen by hand." };
  if (wanted === null && avoid !== null) return { backend: "cpu", reason: avoid };
  const fault = await probe();
  if (fault === null) return { backend: "webgpu", reason: wanted ? "Chosen by hand." : "The graphics adapter passed its checks." };
  if (wanted === null) return { backend: "cpu", reason: fault };
  throw failure("device", `WebGPU was asked for, but cannot be used: ${fault}`, "leave ?backend=webgpu out of the address, or use ?backend=cpu");
}

/** Asks the browser what WebGPU lacks here; an engine that starts on an unfit adapter would panic. */
async function probe(): Promise<string | null> {
  const gpu = (navigator as Navigator & { gpu?: Gpu }).gpu;
  if (!gpu) return "This browser offers no WebGPU here; it also needs HTTPS or localhost.";
  try {
    const adapter = await gpu.requestAdapter();
    if (!adapter) return "The browser found no graphics adapter for WebGPU.";
    return adapter.features.has("timestamp-query") ? null : "The graphics adapter lacks the feature timestamp-query.";
  } catch (error) {
    return `The browser refused WebGPU: ${toFailure(error).message}.`;
  }
}

/** A fresh engine on `next`, with everything loaded that the one before had. */
async function start(next: Running): Promise<void> {
  const address = new URL(ENGINE);
  // A module that has panicked stays broken: every start gets an instance of its own.
  if (starts++ > 0) address.searchParams.set("start", String(starts));
  const module = (await import(address.href)) as EngineModule;
  if (code === null) throw failure("unexpected", "the engine's code is missing", "reload the page");
  await module.default({ module_or_path: await code });
  engine = await guard(module.Engine.create(next.backend));
  engine.open(await keep("bundle.json", "gallery"));
  if (manifest) engine.load_labels(await keep(manifest.labels, "gallery"));
  for (const index of loaded) await loadEncoder(index);
  running = next;
}

async function loadEncoder(index: number): Promise<SelfTest> {
  const entry = opened().encoders[index];
  if (!entry) throw failure("config", `there is no encoder ${index}`, "choose one of the bundle's encoders");
  const [weights, gallery, queries] = await Promise.all(encoderFiles(index));
  if (!weights || !gallery) throw failure("bundle", `${entry.name} lacks a file`, "export the bundle anew");
  const report = reporter("warm-up", entry.name);
  report(0, null);
  const test = await guard(need().load_encoder(index, weights, gallery, queries));
  if (!test.passed) {
    throw failure(
      "device",
      `the self-test of ${entry.name} gave another vector than at export (cosine ${test.cosine.toFixed(4)})`,
      "use another back end, with ?backend=cpu",
    );
  }
  loaded.add(index);
  report(0, null, true);
  return test;
}

// --- When the back end fails ------------------------------------------------------------------

/** Does `work`; if the GPU is at fault, moves to the CPU and does it again. */
async function withFallback<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const fault = toFailure(error);
    if (NOT_THE_DEVICE.has(fault.code)) throw fault;
    if (running.backend === "webgpu" && !forced) {
      await move({ backend: "cpu", reason: `WebGPU was tried first, but ${fault.message}.` });
      return work();
    }
    if (fault.code === "crash" && engine) await move(running);
    throw fault;
  }
}

async function move(next: Running): Promise<void> {
  running = next;
  await start(next);
  scope.postMessage({ running });
}

/** A panic inside a future never settles its promise; it surfaces as an error of the worker. */
let crashed: ((fault: Failure) => void) | null = null;
scope.addEventListener("error", (event) => surfaced(event, event.error));
scope.addEventListener("unhandledrejection", (event) => surfaced(event, event.reason));

function surfaced(event: Event, error: unknown): void {
  if (!crashed) return;
  event.preventDefault();
  crashed(toFailure(error));
}

async function guard<T>(work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const fault = new Promise<never>((_, reject) => {
    crashed = reject;
    if (running.backend === "webgpu") {
      timer = setTimeout(
        () => reject(failure("device", "the graphics adapter did not answer for two minutes", "use ?backend=cpu")),
        PATIENCE_MS,
      );
    }
  });
  try {
    return await Promise.race([work, fault]);
  } finally {
    crashed = null;
    clearTimeout(timer);
  }
}

// --- Files ------------------------------------------------------------------------------------

function need(): Engine {
  if (!engine) throw failure("unexpected", "the engine has not started", "reload the page");
  return engine;
}

function opened(): Manifest {
  if (!manifest) throw failure("bundle", "no bundle is open", "reload the page");
  return manifest;
}

const sizeOf = (path: string): number | null => manifest?.files.find((file) => file.path === path)?.bytes ?? null;

/** Weights, gallery embeddings and, where the bundle stores queries, theirs. */
function encoderFiles(index: number): (Promise<Uint8Array> | undefined)[] {
  const entry = opened().encoders[index];
  if (!entry) return [];
  return [
    keep(entry.weights, "weights"),
    keep(entry.gallery_embeddings, "gallery"),
    entry.query_embeddings === null ? undefined : keep(entry.query_embeddings, "gallery"),
  ];
}

/** A sheet of thumbnails on its way; the page keeps it, not the worker. */
function sheet(index: number): Promise<Uint8Array> {
  const path = opened().thumbnails.sheets[index] ?? "";
  const bytes = sheets.get(index) ?? download(base + path, sizeOf(path), () => {});
  sheets.set(index, bytes);
  return bytes;
}

/** A file of the bundle, fetched once. A failed fetch is forgotten, so that it can be tried again. */
function keep(path: string, phase: Phase): Promise<Uint8Array> {
  const known = kept.get(path);
  if (known) return known;
  const report = reporter(phase, path);
  const bytes = download(base + path, sizeOf(path), report).then(
    (bytes) => {
      report(bytes.length, bytes.length, true);
      return bytes;
    },
    (error: unknown) => {
      kept.delete(path);
      if (path !== "bundle.json") throw error;
      throw failure(
        "bundle",
        `no bundle could be read at ${base}: ${toFailure(error).message}`,
        "write one with `akin export RUN --out BUNDLE`, look at it with `akin serve BUNDLE`, or name its folder in this page's address with ?bundle=PATH",
      );
    },
  );
  kept.set(path, bytes);
  return bytes;
}

/** Tells the page how far `path` is; at most every 60 ms, so that progress costs nothing. */
function reporter(phase: Phase, path: string) {
  let last = 0;
  return (bytes: number, total: number | null, done = false) => {
    const now = performance.now();
    if (!done && bytes > 0 && now - last < 60) return;
    last = now;
    scope.postMessage({ progress: phase, path, loaded: bytes, total, done });
  };
}
