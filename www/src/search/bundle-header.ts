import { html } from "lit";
import type { Collection } from "../collection.js";
import * as format from "../format.js";

/** The title of the bundle, and what it holds. */
export function bundleHeader({ manifest, depth, levels }: Collection) {
  const size = `${format.count(manifest.gallery.count, "picture")}, ${format.count(depth, "level")}`;
  return html`<header class="bundle">
    <h3 class="bundle-title">${manifest.title}</h3>
    <p class="soft">${size}: ${levels.join(" › ")}. ${manifest.description}</p>
  </header>`;
}
