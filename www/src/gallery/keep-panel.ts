import { html, nothing } from "lit";
import { notice } from "../elements/notice.js";
import * as format from "../format.js";
import { askRemoval } from "./ask-removal.js";
import type { OwnGallery } from "./own-gallery.js";
import type { OwnPhotos, Room } from "./own-photos.js";

/** What becomes of the reader's own gallery: kept in this browser, saved as a bundle, or removed. */
export function keepPanel(own: OwnPhotos, gallery: OwnGallery, removed: () => void) {
  const { busy, storeFailure } = own;
  const { kept, bytes } = gallery;
  const action = (id: string, label: string, run: () => void) =>
    html`<button type="button" class="quiet" data-testid=${id} ?disabled=${busy !== null} @click=${run}>
      ${label}
    </button>`;
  const ask = () =>
    askRemoval(gallery.name, gallery.bundle.collection.count, kept !== null, () => {
      void own.remove().then((isRemoved) => {
        if (isRemoved) removed();
      });
    });
  return html`<section
    class="keep"
    aria-label="Keep or remove this gallery"
    data-testid="keep"
    data-state=${kept ? "kept" : "open"}
    data-bytes=${bytes}
    aria-busy=${busy !== null}
  >
    <p class="soft">${kept ? keptText(bytes, own.room) : openText(bytes)}</p>
    <div class="keep-actions">
      ${kept ? nothing : action("keep-here", busy === "keeping" ? "Keeping …" : "Keep in this browser", () => void own.keep())}
      ${action("export-own", busy === "exporting" ? "Writing the bundle …" : "Save as a bundle", () => void own.export())}
      ${action("remove-own", "Remove …", ask)}
    </div>
    <span class="visually-hidden" role="status">${said(own, gallery)}</span>
    ${storeFailure ? notice(storeFailure, TITLES[storeFailure.code] ?? "This could not be done") : nothing}
  </section>`;
}

const TITLES: Record<string, string> = {
  full: "There is no room for this gallery",
  store: "This gallery could not be kept",
};

const openText = (bytes: number) =>
  html`Closing the page forgets this gallery. Kept in this browser, it takes
    <span class="number">${format.bytes(bytes)}</span>: embeddings, names and thumbnails, not the pictures themselves.
    Nothing leaves this device.`;

function keptText(bytes: number, room: Room | null) {
  const { used = null, quota = null, promised = true } = room ?? {};
  return html`Kept in this browser, with <span class="number">${format.bytes(bytes)}</span> of embeddings, names and
    thumbnails, but without the pictures themselves.
    ${
      used !== null && quota !== null
        ? html`This site keeps <span class="number">${format.bytes(used)}</span> in all and may keep
            <span class="number">${format.bytes(quota)}</span>.`
        : nothing
    }
    ${promised ? nothing : "The browser may remove it if the device runs out of room."} Nothing leaves this device.`;
}

function said({ busy }: OwnPhotos, { kept }: OwnGallery): string {
  if (busy === "keeping") return "The gallery is being kept.";
  if (busy === "exporting") return "The bundle is being written.";
  return kept ? "The gallery is kept in this browser." : "";
}
