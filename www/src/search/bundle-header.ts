import { html, nothing } from "lit";
import type { Collection } from "../collection.js";
import * as format from "../format.js";

/** The title of the bundle, and what it holds. Of a gallery that the server searches, also what the server gets. */
export function bundleHeader({ manifest, levels, grades, pictures }: Collection, isServed: boolean) {
  const [least, ...more] = grades;
  const kinship =
    levels.length === 0
      ? "without labels"
      : least === undefined
        ? `${format.count(levels.length, "level")}: ${levels.join(" › ")}`
        : `${format.count(grades.length, "grade")} of relevance, from ${least} to ${more.at(-1) ?? least}`;
  return html`<header class="bundle">
    <h3 class="bundle-title">${manifest.title}</h3>
    <p class="soft">${format.count(pictures, "picture")}, ${kinship}. ${manifest.description}</p>
    ${isServed ? servedNote(manifest.gallery.count, pictures) : nothing}
  </header>`;
}

const servedNote = (sample: number, all: number) =>
  html`<p class="soft" data-testid="served">
    The server of this page searches all of them. Your pictures stay on this device: the page sends the server only the
    embedding of the one that you search with.
    ${
      sample < all
        ? `The map and the pictures to choose from are a sample of ${format.count(sample, "picture")}.`
        : nothing
    }
  </p>`;
