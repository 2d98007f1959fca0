import { html, nothing } from "lit";
import * as format from "../format.js";
import type { Offer } from "../session.js";

/** What a large encoder costs, and the button that loads it. */
export function downloadOffer(offer: Offer | null) {
  if (!offer) return nothing;
  return html`<div class="offer" role="alert" data-testid="offer">
    <p>
      The encoder <b>${offer.name}</b> is a download of <span class="number">${format.bytes(offer.bytes)}</span>${
        offer.runtime > 0
          ? html`, of which <span class="number">${format.bytes(offer.runtime)}</span> are ONNX Runtime, the program
              that runs it`
          : nothing
      }.
      It stays on this device, and pictures that you open never leave it.
    </p>
    <button type="button" class="button" @click=${() => offer.accept()}>Load ${format.bytes(offer.bytes)}</button>
  </div>`;
}
