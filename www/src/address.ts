// What the page's address holds, so that a link shows what its sender saw.

import { failure } from "./failure.js";
import type { Backend } from "./protocol.js";

/** How many results are shown at first, and added at a time. */
export const PAGE = 24;

export interface Address {
  /** Folder of the bundle, relative to the page. */
  bundle: string;
  /** Set where the reader wants this back end and no other. */
  backend: Backend | null;
  /** The stored item that asks. */
  q: number | null;
  /** Name of the encoder shown. */
  encoder: string | null;
  /** Name of the encoder shown beside it. */
  compare: string | null;
  /** How many results are shown. */
  k: number;
}

function whole(text: string | null): number | null {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null;
}

/** Reads an address; whatever it does not understand falls back to its default. */
export function readAddress(search: string): Address {
  const params = new URLSearchParams(search);
  const backend = params.get("backend");
  return {
    bundle: params.get("bundle") ?? "bundle/",
    backend: backend === "cpu" || backend === "webgpu" ? backend : null,
    q: whole(params.get("q")),
    encoder: params.get("encoder"),
    compare: params.get("compare"),
    k: Math.max(1, whole(params.get("k")) ?? PAGE),
  };
}

/** Writes the address bar, leaving out what is at its default. */
export function writeAddress(address: Address): void {
  const params = new URLSearchParams();
  if (address.bundle !== "bundle/") params.set("bundle", address.bundle);
  if (address.backend) params.set("backend", address.backend);
  if (address.q !== null) params.set("q", String(address.q));
  if (address.encoder !== null) params.set("encoder", address.encoder);
  if (address.compare !== null) params.set("compare", address.compare);
  if (address.k !== PAGE) params.set("k", String(address.k));
  const search = params.toString();
  history.replaceState(null, "", `${location.pathname}${search && `?${search}`}${location.hash}`);
}

/** The bundle's full address. Only the page's own origin: nothing is asked of anyone else. */
export function bundleAddress(bundle: string): string {
  let address: URL;
  try {
    address = new URL(bundle.endsWith("/") ? bundle : `${bundle}/`, document.baseURI);
  } catch {
    throw failure("origin", `“${bundle}” is not an address`, "name a folder beside this page, such as ?bundle=bundle/");
  }
  if (address.origin !== location.origin) {
    throw failure(
      "origin",
      `the bundle at ${address.origin} is not loaded: this page speaks to its own origin only`,
      "copy the bundle beside this page and name its folder, such as ?bundle=bundle/",
    );
  }
  address.search = "";
  address.hash = "";
  return address.href;
}
