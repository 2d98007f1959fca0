// The page's side of the service worker: asks it to keep what the page has loaded, and empties its cache.

import { session } from "../session.js";

/**
 * `none`: this browser or address cannot keep files. `empty`: nothing is kept yet, or any more. `full`: the
 * browser gives the page no more room.
 */
export type OfflineState = "none" | "empty" | "kept" | "full";

/** The caches of service-worker.ts, and that of worker.ts. */
const CACHES = ["akin-documents", "akin-files", "akin-parity"];

/** So long after its last file the page counts as loaded, in milliseconds. */
const QUIET_MS = 1500;

/** Fires `change`. */
export class Offline extends EventTarget {
  state: OfflineState = "none";
  private readonly told = new Set<string>();

  /** Registers the worker after the page has loaded, so that it takes nothing from the first visit. */
  async start(): Promise<void> {
    const script = document.querySelector<HTMLMetaElement>('meta[name="akin-service-worker"]')?.content;
    // Without HTTPS or localhost there is no service worker, and some browsers have none in private windows.
    if (!script || !("serviceWorker" in navigator)) return;
    if (document.readyState !== "complete") await new Promise((resolve) => window.addEventListener("load", resolve));
    await quiet();
    navigator.serviceWorker.addEventListener("message", ({ data }: MessageEvent<{ offline: OfflineState }>) =>
      this.set(data.offline),
    );
    try {
      await navigator.serviceWorker.register(script);
    } catch {
      return;
    }
    if (this.state === "none") this.set("empty");
    const registration = await navigator.serviceWorker.ready;
    const keepLoaded = async () => {
      const files = [...filesOf(performance), ...(await session.files())].filter((file) => !this.told.has(file));
      if (files.length === 0) return;
      for (const file of files) this.told.add(file);
      registration.active?.postMessage({ keep: files });
    };
    await keepLoaded();
    // A bundle may be opened later, and each sheet of thumbnails when it is first seen.
    let timer: ReturnType<typeof setTimeout> | undefined;
    session.addEventListener("change", () => {
      clearTimeout(timer);
      timer = setTimeout(() => void keepLoaded(), QUIET_MS);
    });
  }

  /** The bytes that are kept on this device. */
  async bytes(): Promise<number> {
    let sum = 0;
    for (const name of CACHES) {
      if (!(await caches.has(name))) continue;
      for (const response of await (await caches.open(name)).matchAll()) {
        const stated = response.headers.get("x-akin-bytes");
        sum += stated === null ? (await response.blob()).size : Number(stated);
      }
    }
    return sum;
  }

  /** Removes everything that is kept. The next visit keeps it again. */
  async empty(): Promise<void> {
    for (const name of CACHES) await caches.delete(name);
    this.told.clear();
    this.set("empty");
  }

  private set(state: OfflineState): void {
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }
}

/** The files of the page's own origin that were loaded so far. */
const filesOf = (performance: Performance): string[] =>
  performance
    .getEntriesByType("resource")
    .map(({ name }) => name)
    .filter((name) => name.startsWith(location.origin));

/** Resolves when the page has been idle for a while. */
function quiet(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, QUIET_MS));
}

export const offline = new Offline();
