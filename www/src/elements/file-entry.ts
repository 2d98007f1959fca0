import { html } from "lit";
import { state } from "lit/decorators.js";
import { failure } from "../failure.js";
import { LightElement } from "./light.js";

/**
 * Takes a picture: dropped anywhere on the page, pasted, or chosen. Fires `picture` with the file,
 * or `refuse` with a failure.
 */
export class AkinFile extends LightElement {
  @state() private accessor over = false;
  /** Enter and leave events come for every element passed; their balance says whether one is inside. */
  private depth = 0;

  override connectedCallback(): void {
    super.connectedCallback();
    document.addEventListener("dragenter", this.enter);
    document.addEventListener("dragover", this.hold);
    document.addEventListener("dragleave", this.leave);
    document.addEventListener("drop", this.drop);
    document.addEventListener("paste", this.paste);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    document.removeEventListener("dragenter", this.enter);
    document.removeEventListener("dragover", this.hold);
    document.removeEventListener("dragleave", this.leave);
    document.removeEventListener("drop", this.drop);
    document.removeEventListener("paste", this.paste);
  }

  override render() {
    return html`<div class="entry" data-over=${this.over}>
      <svg class="entry-mark" viewBox="0 0 48 48" aria-hidden="true">
        <rect x="7" y="9" width="34" height="30" rx="2" />
        <circle cx="17" cy="19" r="3.5" />
        <path d="m8 36 11-11 7 7 6-6 9 9" />
      </svg>
      <p class="entry-title">${this.over ? "Let go to ask with it" : "Ask with your own picture"}</p>
      <p class="soft entry-ways">Drop it anywhere, paste it, or</p>
      <label class="button file">
        <input type="file" class="visually-hidden" data-testid="file" accept="image/jpeg,image/png,image/webp" @change=${this.choose} />
        Choose a file
      </label>
      <p class="soft entry-note">JPEG, PNG, WebP. Stays on this device.</p>
    </div>`;
  }

  private readonly carries = (event: DragEvent): boolean =>
    [...(event.dataTransfer?.types ?? [])].some((type) => type === "Files" || type === "text/uri-list");

  private readonly enter = (event: DragEvent): void => {
    if (!this.carries(event)) return;
    event.preventDefault();
    this.depth++;
    this.over = true;
  };

  private readonly hold = (event: DragEvent): void => {
    if (this.carries(event)) event.preventDefault();
  };

  private readonly leave = (event: DragEvent): void => {
    if (!this.carries(event)) return;
    this.depth = Math.max(0, this.depth - 1);
    this.over = this.depth > 0;
  };

  private readonly drop = (event: DragEvent): void => {
    if (!this.carries(event)) return;
    event.preventDefault();
    this.depth = 0;
    this.over = false;
    const file = event.dataTransfer?.files[0];
    if (file) this.take(file);
    else {
      this.refuse(
        "image",
        "what was dropped is a link to a picture, and this page asks nothing of other sites",
        "save the picture first, then drop the file",
      );
    }
  };

  private readonly paste = (event: ClipboardEvent): void => {
    const file = [...(event.clipboardData?.files ?? [])].find(({ type }) => type.startsWith("image/")) ?? event.clipboardData?.files[0];
    if (!file) return;
    event.preventDefault();
    this.take(file);
  };

  private choose(event: Event): void {
    const input = event.target as HTMLInputElement;
    const file = input.files?.[0];
    if (file) this.take(file);
    // The same file can be chosen again.
    input.value = "";
  }

  private take(file: File): void {
    this.dispatchEvent(new CustomEvent("picture", { detail: file }));
  }

  private refuse(code: string, message: string, hint: string): void {
    this.dispatchEvent(new CustomEvent("refuse", { detail: failure(code, message, hint) }));
  }
}
customElements.define("akin-file", AkinFile);
