import { html } from "lit";
import type { Collection } from "../collection.js";
import * as format from "../format.js";

/** The title of the bundle, and what it holds. */
export function bundleHeader({ manifest, levels, grades }: Collection) {
  const [least, ...more] = grades;
  const kinship =
    least === undefined
      ? `${format.count(levels.length, "level")}: ${levels.join(" › ")}`
      : `${format.count(grades.length, "grade")} of relevance, from ${least} to ${more.at(-1) ?? least}`;
  return html`<header class="bundle">
    <h3 class="bundle-title">${manifest.title}</h3>
    <p class="soft">${format.count(manifest.gallery.count, "picture")}, ${kinship}. ${manifest.description}</p>
  </header>`;
}
