import { html, nothing } from "lit";
import { state } from "lit/decorators.js";
import { LightElement } from "../elements/light.js";
import * as format from "../format.js";
import { offline } from "./offline.js";

/** Says whether the page works offline and how much it keeps on this device, and removes that. */
export class AkinOffline extends LightElement {
  @state() private accessor bytes = 0;
  @state() private accessor said = "";

  override connectedCallback(): void {
    super.connectedCallback();
    offline.addEventListener("change", this.onChange);
    void offline.start();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    offline.removeEventListener("change", this.onChange);
  }

  private readonly onChange = (): void => {
    void offline.bytes().then((bytes) => {
      this.bytes = bytes;
      this.requestUpdate();
    });
  };

  override render() {
    if (offline.state === "none") return nothing;
    return html`<p class="offline" data-testid="offline" data-state=${offline.state} data-bytes=${this.bytes}>
      ${this.text()}
      ${
        this.bytes > 0
          ? html`<button type="button" class="quiet" data-testid="empty-cache" @click=${this.empty}>
              Remove ${format.bytes(this.bytes)} from this device
            </button>`
          : nothing
      }
      <span class="visually-hidden" role="status">${this.said}</span>
    </p>`;
  }

  private text(): string {
    switch (offline.state) {
      case "kept":
        return "This page works offline, with the galleries that you have opened.";
      case "full":
        return "This page does not work offline, because the browser has no room for its files. Free some space on this device, or remove what the page keeps.";
      default:
        return "This page will work offline from your next visit on.";
    }
  }

  private async empty(): Promise<void> {
    await offline.empty();
    this.said = "Removed.";
  }
}
customElements.define("akin-offline", AkinOffline);
