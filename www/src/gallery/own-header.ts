import { html, nothing } from "lit";
import * as format from "../format.js";
import type { OwnGallery } from "./own-gallery.js";
import { LIMIT } from "./photos.js";

/** The title of the reader's own gallery, what it holds, and what was left out. */
export function ownHeader({ bundle, folder, damaged }: OwnGallery) {
  const { levels, depth, count } = bundle.collection;
  const labels =
    depth === 0
      ? "There are no subfolders, so the pictures have no labels and the rankings no scores."
      : `The folders are the labels: ${levels.join(" › ")}.`;
  return html`<header class="bundle" data-testid="own" data-count=${count}>
    <h3 class="bundle-title">${folder.name}</h3>
    <p class="soft">${format.count(count, "picture")} on this device; closing the page forgets them. ${labels}</p>
    ${
      folder.beyond > 0
        ? html`<p class="soft">
            A gallery holds ${LIMIT.toLocaleString("en")} pictures, so the last
            ${format.count(folder.beyond, "picture was", "pictures were")} left out.
          </p>`
        : nothing
    }
    ${folder.others > 0 ? html`<p class="soft">${format.count(folder.others, "other file was", "other files were")} left out.</p>` : nothing}
    ${
      damaged.length > 0
        ? html`<details class="damaged" data-testid="damaged" data-count=${damaged.length}>
            <summary>
              ${format.count(damaged.length, "picture", "pictures")} could not be read and
              ${damaged.length === 1 ? "was" : "were"} left out
            </summary>
            <dl>
              ${damaged.map(
                ({ name, reason }) =>
                  html`<div>
                    <dt>${name}</dt>
                    <dd>${reason}</dd>
                  </div>`,
              )}
            </dl>
          </details>`
        : nothing
    }
  </header>`;
}
