import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { notice } from "../elements/notice.js";
import type { Failure } from "../failure.js";
import * as format from "../format.js";
import { PICTURES } from "../picture-file.js";
import { vars } from "../vars.js";
import { askRemoval } from "./ask-removal.js";
import { isSameBundle, type BundleEntry } from "./bundles.js";
import { mostPictures } from "./limit.js";
import type { OwnGallery } from "./own-gallery.js";
import type { Embedding, OwnPhotos } from "./own-photos.js";
import { fromArchive, fromInput, type Folder } from "./photos.js";
import type { Kept } from "./store.js";

/** What the bar shows, and what it calls. */
export interface GalleryBar {
  readonly bundles: readonly BundleEntry[];
  /** The open bundle, as the address names it. */
  readonly bundle: string;
  readonly own: OwnPhotos;
  /** Whether the reader's own gallery is shown. */
  readonly isOwn: boolean;
  /** The encoder that would embed own pictures. Null until a bundle is open. */
  readonly encoder: { readonly name: string; readonly dimension: number } | null;
  readonly chooseBundle: (path: string) => void;
  /** Shows the gallery that is not kept. */
  readonly chooseOwn: (gallery: OwnGallery) => void;
  /** Shows a kept gallery. */
  readonly chooseKept: (kept: Kept) => void;
  readonly makeOwn: (folder: Folder | Promise<Folder>) => void;
  /** Says that a folder holds no bundle. */
  readonly refuseFolder: (name: string) => void;
}

/** The choice of the gallery, and the way to one of the reader's own pictures. */
export function galleryBar(bar: GalleryBar) {
  const { bundles, own } = bar;
  const choices = bundles.length + own.kept.length + (own.unkept ? 1 : 0);
  return html`<div class="gallery-bar">
      ${choices > 1 ? gallerySwitch(bar) : nothing}
      <div class="gallery-entries">
        ${bar.encoder === null ? nothing : ownEntry(bar, bar.encoder)} ${bundleEntry(bar)}
      </div>
    </div>
    ${own.embedding ? embeddingProgress(own.embedding) : nothing}
    ${own.failure ? failureNotice(own, own.failure) : nothing}`;
}

const TITLES: Record<string, string> = {
  bundle: "This is not a bundle",
  store: "A kept gallery could not be opened",
};

function failureNotice(own: OwnPhotos, failure: Failure) {
  const { refused } = own;
  const remove = refused && {
    label: `Remove “${refused.gallery.name}” from this browser`,
    run: () => askRemoval(refused.gallery.name, refused.gallery.files.length, true, () => void own.removeKept(refused)),
  };
  return notice(failure, TITLES[failure.code] ?? "Your pictures could not be used", remove ?? undefined);
}

function gallerySwitch({ bundles, bundle, own, isOwn, chooseBundle, chooseOwn, chooseKept }: GalleryBar) {
  const { unkept } = own;
  const shown = isOwn ? own.gallery : null;
  const choice = (value: string, title: string, checked: boolean, choose: () => void) =>
    html`<label>
      <input type="radio" name="gallery" value=${value} .checked=${live(checked)} @change=${choose} />
      <span>${title}</span>
    </label>`;
  return html`<fieldset class="switch" data-testid="galleries">
    <legend>Gallery</legend>
    ${bundles.map(({ path, title }) => choice(path, title, !isOwn && isSameBundle(path, bundle), () => chooseBundle(path)))}
    ${own.kept.map((kept) =>
      choice(`kept-${kept.key}`, kept.gallery.name, shown?.kept?.key === kept.key, () => chooseKept(kept)),
    )}
    ${unkept ? choice("own", unkept.name, shown === unkept, () => chooseOwn(unkept)) : nothing}
  </fieldset>`;
}

const canChooseFolder = "webkitdirectory" in HTMLInputElement.prototype;

const close = (element: Element) => element.closest("details")?.removeAttribute("open");

/** A button for files, or for a folder where the browser can choose one. Closes its entry, and gives `take` the files. */
function fileButton(
  testid: string,
  label: string,
  take: (files: File[]) => void,
  { folder = false, several = false, accept }: { folder?: boolean; several?: boolean; accept?: string },
) {
  if (folder && !canChooseFolder) return nothing;
  const change = (event: Event) => {
    const input = event.target as HTMLInputElement;
    const files = [...(input.files ?? [])];
    // So that the same files can be chosen again.
    input.value = "";
    if (files.length === 0) return;
    close(input);
    take(files);
  };
  return html`<label class="button file">
    <input
      type="file"
      class="visually-hidden"
      data-testid=${testid}
      ?webkitdirectory=${folder}
      ?multiple=${several}
      accept=${accept ?? nothing}
      @change=${change}
    />
    ${label}
  </label>`;
}

function ownEntry({ own, makeOwn }: GalleryBar, encoder: { readonly name: string; readonly dimension: number }) {
  const take = (files: File[]) => makeOwn(fromInput(files));
  return html`<details class="own-entry" data-testid="own-entry">
    <summary>${own.gallery ? "Make another of your own pictures" : "Make a gallery of your own pictures"}</summary>
    <div class="own-entry-text">
      <p>
        ${canChooseFolder ? "Choose a folder of photos, drop one anywhere on this page, or choose" : "Choose"} several
        pictures. ${encoder.name} embeds them here, and nothing leaves this device. Subfolders become labels. With its
        ${format.count(encoder.dimension, "dimension")}, the memory of this device has room for
        ${mostPictures(encoder.dimension).toLocaleString("en")} pictures.
      </p>
      ${fileButton("own-folder", "Choose a folder", take, { folder: true })}
      ${fileButton("own-files", "Choose pictures", take, { several: true, accept: PICTURES })}
    </div>
  </details>`;
}

/** The ways to a bundle that the page does not offer: a folder on the reader's device, or an address. */
function bundleEntry({ makeOwn, refuseFolder, chooseBundle }: GalleryBar) {
  const take = (files: File[]) => {
    const folder = fromInput(files);
    if (folder.bundle) makeOwn(folder);
    else refuseFolder(folder.name);
  };
  const takeArchive = ([file]: File[]) => {
    if (file) makeOwn(fromArchive(file));
  };
  const openAddress = (event: Event) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const address = form.querySelector("input")?.value.trim() ?? "";
    if (address === "") return;
    close(form);
    chooseBundle(address);
  };
  return html`<details class="own-entry" data-testid="bundle-entry">
    <summary>Open another bundle</summary>
    <div class="own-entry-text">
      <p>
        A bundle is a folder that <code>akin export</code> wrote.
        ${canChooseFolder ? "Choose one on this device, or its zip archive, drop it" : "Choose its zip archive, drop it"}
        anywhere on this page, or name the address of one on this site. Nothing leaves this device.
      </p>
      ${fileButton("bundle-folder", "Choose a folder", take, { folder: true })}
      ${fileButton("bundle-archive", "Choose an archive", takeArchive, { accept: ".zip,application/zip" })}
      <form class="field" @submit=${openAddress}>
        <label
          >Address <input data-testid="bundle-address" placeholder="bundle/" autocomplete="off" spellcheck="false"
        /></label>
        <button type="submit" class="quiet">Open</button>
      </form>
    </div>
  </details>`;
}

function embeddingProgress({ encoder, done, total, started, keeps, stop, discard }: Embedding) {
  const left = ((performance.now() - started) / done) * (total - done);
  return html`<section class="waiting" aria-label="Embedding" data-testid="embedding">
    <p class="waiting-title">Embedding your pictures with ${encoder}</p>
    <div
      class="phases"
      role="progressbar"
      aria-label="Pictures embedded"
      aria-valuemin="0"
      aria-valuemax=${total}
      aria-valuenow=${done}
    >
      <p class="embedding-line" ${vars({ "--share": total === 0 ? 0 : done / total })}>
        <span class="number">${done.toLocaleString("en")}</span>
        <span class="soft number">of ${format.count(total, "picture")}</span>
        ${done >= ENOUGH && done < total ? html`<span class="soft time-left">${format.timeLeft(left)}</span>` : nothing}
        <i class="phase-bar"></i>
      </p>
    </div>
    ${
      keeps && done > 0
        ? html`<button type="button" class="quiet" data-testid="stop" @click=${stop}>
            Stop, and use the ${format.count(done, "picture")}
          </button>`
        : nothing
    }
    <button type="button" class="quiet" data-testid="cancel" @click=${discard}>Cancel</button>
  </section>`;
}

/** After so many pictures, the time that is left can be told. */
const ENOUGH = 20;
