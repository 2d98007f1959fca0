import { html, nothing } from "lit";
import * as format from "../format.js";
import { keepPanel } from "./keep-panel.js";
import type { LeftOut, OwnGallery } from "./own-gallery.js";
import type { OwnPhotos } from "./own-photos.js";

/** The title of the reader's own gallery, what it holds, what was left out, and what can become of it. */
export function ownHeader(own: OwnPhotos, gallery: OwnGallery, removed: () => void) {
  const { levels, depth, count } = gallery.bundle.collection;
  const labels =
    depth === 0
      ? "There are no subfolders, so the pictures have no labels and the rankings no scores."
      : `The folders are the labels: ${levels.join(" › ")}.`;
  return html`<header class="bundle" data-testid="own" data-count=${count}>
      <h3 class="bundle-title">${gallery.name}</h3>
      <p class="soft">${format.count(count, "picture")}. ${labels}</p>
      ${leftOut(gallery.leftOut, count)}
    </header>
    ${keepPanel(own, gallery, removed)}`;
}

function leftOut({ damaged, others, beyond, stopped }: LeftOut, count: number) {
  const were = (number: number, one: string) => `${format.count(number, one)} ${number === 1 ? "was" : "were"}`;
  return html`${
    stopped > 0
      ? html`<p class="soft" data-testid="stopped" data-count=${stopped}>
          You stopped before the last ${format.count(stopped, "picture")}, which ${stopped === 1 ? "is" : "are"} left
          out. Choose the folder again for all of them.
        </p>`
      : nothing
  }
  ${
    beyond > 0
      ? html`<p class="soft" data-testid="beyond" data-count=${beyond}>
          The memory of this device has room for about ${(count + damaged.length + stopped).toLocaleString("en")}
          pictures with this encoder, so the last ${were(beyond, "picture")} left out.
        </p>`
      : nothing
  }
  ${others > 0 ? html`<p class="soft">${were(others, "other file")} left out.</p>` : nothing}
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
  }`;
}
