// The state of the page that its address holds, so that a link shows what its sender saw.

import { failure } from "./failure.js";
import type { Backend } from "./protocol.js";

/** The number of results shown at first, and added by each “Show more”. */
export const PAGE = 24;

export interface Address {
  /** The folder of the bundle, relative to the page. */
  bundle: string;
  /** The only back end that may run, where the reader chose one. */
  backend: Backend | null;
  /** The query, if it is an item of the bundle. */
  q: number | null;
  /** The name of the encoder shown. */
  encoder: string | null;
  /** The name of the encoder shown beside it. */
  compare: string | null;
  /** The number of results shown. */
  k: number;
}

function wholeNumber(text: string | null): number | null {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null;
}

/** Reads an address. A missing or invalid value gets its default. */
export function readAddress(search: string): Address {
  const params = new URLSearchParams(search);
  const backend = params.get("backend");
  return {
    bundle: params.get("bundle") ?? "bundle/",
    backend: backend === "cpu" || backend === "webgpu" ? backend : null,
    q: wholeNumber(params.get("q")),
    encoder: params.get("encoder"),
    compare: params.get("compare"),
    k: Math.max(1, wholeNumber(params.get("k")) ?? PAGE),
  };
}

/** Writes the address bar. Values at their default are left out. */
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

/** The full address of the bundle, which must be on the page's own origin. */
export function bundleAddress(bundle: string): string {
  let address: URL;
  try {
    address = new URL(bundle.endsWith("/") ? bundle : `${bundle}/`, document.baseURI);
  } catch {
    throw failure(
      "origin",
      `“${bundle}” is not a valid address`,
      "name a folder beside this page, such as ?bundle=bundle/",
    );
  }
  if (address.origin !== location.origin) {
    throw failure(
      "origin",
      `the bundle is at ${address.origin}, but this page loads from its own origin only`,
      "copy the bundle into a folder beside this page and name that folder, such as ?bundle=bundle/",
    );
  }
  address.search = "";
  address.hash = "";
  return address.href;
}
