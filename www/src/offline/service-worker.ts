// The service worker: keeps what the page has loaded, so that it works offline after the first visit.
//
// Nothing stale is ever served while the server answers:
// - Documents (pages, and the JSON files that name others) come from the network, and from the cache only
//   without one.
// - Every other file is kept under the SHA-256 of its bytes. `akin-files.json` names the hashes of the
//   page's own files, or in its folder those of ONNX Runtime, and `bundle.json` those of a bundle, so a file that has changed is another file.
// - A file that no document names is none of this worker's business.
//
// It is one file without imports, because it must lie beside index.html.

interface Scope {
  readonly registration: { readonly scope: string; unregister(): Promise<boolean> };
  readonly clients: { claim(): Promise<void>; matchAll(): Promise<{ postMessage(message: unknown): void }[]> };
  skipWaiting(): Promise<void>;
  addEventListener(type: string, listener: (event: ExtendableEvent) => void): void;
}
interface ExtendableEvent {
  waitUntil(work: Promise<unknown>): void;
}
interface FetchEvent extends ExtendableEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}
interface KeepEvent extends ExtendableEvent {
  /** The addresses of files that the page has loaded without this worker. */
  readonly data: { keep: string[] };
}
const scope = self as unknown as Scope;

/** What is kept by its address, and what by its hash. `offline.ts` knows these names. */
const DOCUMENTS = "akin-documents";
const FILES = "akin-files";

const BASE = scope.registration.scope;
const LIST = new URL("akin-files.json", BASE).href;
const HASHES = new URL("sha256/", BASE).href;

/** Of the page's own files, those up to this size are kept before they are needed. */
const SMALL = 300_000;

/** The files of a folder, as `akin-files.json` and `bundle.json` name them. */
interface Listed {
  readonly files: { readonly path: string; readonly bytes: number; readonly sha256: string }[];
}

scope.addEventListener("install", (event) => event.waitUntil(scope.skipWaiting()));
scope.addEventListener("activate", (event) => event.waitUntil(scope.clients.claim()));
scope.addEventListener("message", (event) => event.waitUntil(keep((event as KeepEvent).data.keep)));
scope.addEventListener("fetch", (event) => {
  const { request, respondWith, waitUntil } = bound(event as FetchEvent);
  if (request.method !== "GET" || !request.url.startsWith(BASE) || request.headers.has("range")) return;
  respondWith(answer(request, waitUntil));
});

const bound = (event: FetchEvent) => ({
  request: event.request,
  respondWith: event.respondWith.bind(event),
  waitUntil: event.waitUntil.bind(event),
});

/** The address of a file, without what follows its path. */
function plain(address: string): string {
  const url = new URL(address);
  url.search = "";
  url.hash = "";
  return url.href;
}

const isDocument = (address: string): boolean => /(\/|\.html|\/akin-files\.json|\/bundles?\.json)$/.test(address);

async function answer(request: Request, waitUntil: (work: Promise<unknown>) => void): Promise<Response> {
  const address = plain(request.url);
  if (request.mode === "navigate") {
    // The page's own files may be others than last time.
    const [response] = await Promise.all([documentFrom(request, address), refreshList()]);
    return response;
  }
  if (isDocument(address)) return documentFrom(request, address);
  const hash = await hashOf(address);
  if (hash === null) return fetch(request);
  const kept = await (await caches.open(FILES)).match(HASHES + hash);
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok) waitUntil(keepFile(hash, response.clone()));
  return response;
}

// --- Documents ---------------------------------------------------------------------------------

async function documentFrom(request: Request | string, address: string): Promise<Response> {
  const cache = await caches.open(DOCUMENTS);
  try {
    const response = await fetch(request);
    if (response.ok) await put(cache, address, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(address);
    if (kept) return kept;
    throw error;
  }
}

/** Reads the list of the page's own files again. Gives up this place if another site lies here now. */
async function refreshList(): Promise<void> {
  const response = await documentFrom(new Request(LIST, { cache: "no-cache" }), LIST).catch(() => null);
  if (response?.status !== 404) return;
  await Promise.all([caches.delete(DOCUMENTS), caches.delete(FILES), scope.registration.unregister()]);
}

// --- Files by hash -----------------------------------------------------------------------------

/** The hash of a file, from the list of the page or the nearest manifest above it. Null if none names it. */
async function hashOf(address: string): Promise<string | null> {
  const cache = await caches.open(DOCUMENTS);
  let folder = new URL(".", address).href;
  for (; folder.startsWith(BASE); folder = new URL("..", folder).href) {
    const isTop = folder === BASE;
    const document =
      (await cache.match(`${folder}akin-files.json`)) ??
      (isTop ? undefined : await cache.match(`${folder}bundle.json`));
    if (document) {
      const path = decodeURIComponent(address.slice(folder.length));
      return listed(await document.text())?.files.find((file) => file.path === path)?.sha256 ?? null;
    }
    if (isTop) break;
  }
  return null;
}

/** The list in a document, or null if it is damaged. The page reports damage. */
function listed(text: string): Listed | null {
  try {
    const list = JSON.parse(text) as Listed;
    return Array.isArray(list.files) ? list : null;
  } catch {
    return null;
  }
}

async function keepFile(hash: string, response: Response): Promise<void> {
  const bytes = await response.arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const found = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  // The server has another file under this name, so its documents are being replaced.
  if (found !== hash) return;
  const headers = {
    "content-type": response.headers.get("content-type") ?? "",
    "x-akin-bytes": String(bytes.byteLength),
  };
  await put(await caches.open(FILES), HASHES + hash, new Response(bytes, { headers }));
}

/** Whether the browser has given this site no more room. The page works as before, but not offline. */
let isFull = false;

async function put(cache: Cache, address: string, response: Response): Promise<void> {
  try {
    await cache.put(address, response);
    isFull = false;
  } catch {
    isFull = true;
    await tellPages();
  }
}

async function tellPages(): Promise<void> {
  for (const client of await scope.clients.matchAll()) client.postMessage({ offline: isFull ? "full" : "kept" });
}

// --- After the first visit ---------------------------------------------------------------------

/** Keeps what the page had loaded before this worker was there, and the small files of its other views. */
async function keep(addresses: string[]): Promise<void> {
  await refreshList();
  const plainAddresses = new Set(addresses.map(plain).filter((address) => address.startsWith(BASE)));
  // Documents first: they name the hashes of the files.
  for (const address of [BASE, ...plainAddresses].filter(isDocument))
    await documentFrom(address, address).catch(() => {});
  const list = listed((await (await (await caches.open(DOCUMENTS)).match(LIST))?.text()) ?? "");
  for (const { path, bytes } of list?.files ?? []) if (bytes <= SMALL) plainAddresses.add(new URL(path, BASE).href);
  const cache = await caches.open(FILES);
  for (const address of plainAddresses) {
    const hash = isDocument(address) ? null : await hashOf(address);
    if (hash === null || (await cache.match(HASHES + hash))) continue;
    const response = await fetch(address).catch(() => null);
    if (response?.ok) await keepFile(hash, response);
  }
  await tellPages();
}
