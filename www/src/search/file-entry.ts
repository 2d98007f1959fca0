import { html } from "lit";
import { property, state } from "lit/decorators.js";
import { failure } from "../failure.js";
import { fromDrop } from "../gallery/photos.js";
import { LightElement } from "../elements/light.js";
import { PICTURES } from "../picture-file.js";

/**
 * Takes a picture that is dropped anywhere on the page, pasted, or chosen. Fires `picture` with the
 * file, `folder` with the promise of a dropped folder or archive or of several dropped pictures, or `reject` with a failure.
 */
export class AkinFile extends LightElement {
  /** Whether the gallery has an encoder for pictures. Without one a bundle can still be dropped. */
  @property({ attribute: false }) accessor embeds = true;
  @state() private accessor over = false;
  /** Entered minus left elements: enter and leave events come for every element that the pointer passes. */
  private depth = 0;

  override connectedCallback(): void {
    super.connectedCallback();
    document.addEventListener("dragenter", this.onEnter);
    document.addEventListener("dragover", this.onOver);
    document.addEventListener("dragleave", this.onLeave);
    document.addEventListener("drop", this.onDrop);
    document.addEventListener("paste", this.onPaste);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    document.removeEventListener("dragenter", this.onEnter);
    document.removeEventListener("dragover", this.onOver);
    document.removeEventListener("dragleave", this.onLeave);
    document.removeEventListener("drop", this.onDrop);
    document.removeEventListener("paste", this.onPaste);
  }

  override render() {
    return html`<div class="entry" data-over=${this.over}>
      <svg class="entry-mark" viewBox="0 0 48 48" aria-hidden="true">
        <rect x="7" y="9" width="34" height="30" rx="2" />
        <circle cx="17" cy="19" r="3.5" />
        <path d="m8 36 11-11 7 7 6-6 9 9" />
      </svg>
      ${this.embeds ? this.ways() : WITHOUT_ENCODER}
    </div>`;
  }

  private ways() {
    return html`<p class="entry-title">${this.over ? "Drop it to search with it" : "Search with your own picture"}</p>
      <p class="soft entry-ways">Drop it anywhere, paste it, or</p>
      <div class="entry-buttons">
        <label class="button file">
          <input type="file" class="visually-hidden" data-testid="file" accept=${PICTURES} @change=${this.choose} />
          Choose a file
        </label>
        <button type="button" class="quiet" data-testid="take-photo" @click=${this.photograph}>Take a photo</button>
      </div>
      <p class="soft entry-note">JPEG, PNG, WebP, GIF, BMP, AVIF. It stays on this device.</p>`;
  }

  private readonly hasFileOrLink = (event: DragEvent): boolean =>
    [...(event.dataTransfer?.types ?? [])].some((type) => type === "Files" || type === "text/uri-list");

  private readonly onEnter = (event: DragEvent): void => {
    if (!this.hasFileOrLink(event)) return;
    event.preventDefault();
    this.depth++;
    this.over = true;
  };

  private readonly onOver = (event: DragEvent): void => {
    if (this.hasFileOrLink(event)) event.preventDefault();
  };

  private readonly onLeave = (event: DragEvent): void => {
    if (!this.hasFileOrLink(event)) return;
    this.depth = Math.max(0, this.depth - 1);
    this.over = this.depth > 0;
  };

  private readonly onDrop = (event: DragEvent): void => {
    if (!this.hasFileOrLink(event)) return;
    event.preventDefault();
    this.depth = 0;
    this.over = false;
    const folder = event.dataTransfer && fromDrop(event.dataTransfer);
    const file = event.dataTransfer?.files[0];
    if (folder) this.dispatchEvent(new CustomEvent("folder", { detail: folder }));
    else if (file) this.take(file);
    else {
      this.reject(
        "image",
        "this is a link to a picture, and the page does not load from other sites",
        "save the picture first, then drop the file",
      );
    }
  };

  private readonly onPaste = (event: ClipboardEvent): void => {
    const file =
      [...(event.clipboardData?.files ?? [])].find(({ type }) => type.startsWith("image/")) ??
      event.clipboardData?.files[0];
    if (!file) return;
    event.preventDefault();
    this.take(file);
  };

  private async photograph(event: Event): Promise<void> {
    const button = event.currentTarget as HTMLElement;
    const { takePhoto } = await import("./camera.js");
    const photo = await takePhoto();
    if (photo) this.take(photo);
    else button.focus();
  }

  private choose(event: Event): void {
    const input = event.target as HTMLInputElement;
    const file = input.files?.[0];
    if (file) this.take(file);
    // So that the same file can be chosen again.
    input.value = "";
  }

  private take(file: File): void {
    this.dispatchEvent(new CustomEvent("picture", { detail: file }));
  }

  private reject(code: string, message: string, hint: string): void {
    this.dispatchEvent(new CustomEvent("reject", { detail: failure(code, message, hint) }));
  }
}
customElements.define("akin-file", AkinFile);

const WITHOUT_ENCODER = html`<p class="entry-title" data-testid="no-encoder">This gallery has no encoder</p>
  <p class="soft entry-ways">
    It holds embeddings of its own pictures, but not the program that made them. So it cannot be searched with a picture
    of yours. Choose one from the gallery.
  </p>`;
