import { html, nothing } from "lit";
import type { EncoderEntry } from "../protocol.js";

export interface Shown {
  encoder: number;
  /** The encoder shown beside it. */
  compare: number | null;
}

/** The choice of the encoder that ranks, or of two side by side. */
export function encoderSwitch(encoders: readonly EncoderEntry[], shown: Shown, change: (shown: Shown) => void) {
  if (encoders.length < 2)
    return html`<p class="encoder-only"><span class="soft">Encoder</span> ${encoders[0]?.name}</p>`;
  const both = shown.compare !== null;
  // Side by side, the first encoder of the bundle (its baseline) is on the left.
  const showBoth = () =>
    change(shown.encoder === 0 ? { encoder: 0, compare: 1 } : { encoder: 0, compare: shown.encoder });
  return html`<fieldset class="switch" data-testid="encoders">
      <legend>Encoder</legend>
      ${encoders.map(
        ({ name }, index) =>
          html`<label>
            <input
              type="radio"
              name="encoder"
              value=${name}
              .checked=${!both && shown.encoder === index}
              @change=${() => change({ encoder: index, compare: null })}
            />
            <span>${name}</span>
          </label>`,
      )}
      <label>
        <input type="radio" name="encoder" value="" data-testid="compare" .checked=${both} @change=${showBoth} />
        <span>Side by side</span>
      </label>
    </fieldset>
    ${both && encoders.length > 2 ? pairChoice(encoders, shown, change) : nothing}`;
}

function pairChoice(encoders: readonly EncoderEntry[], shown: Shown, change: (shown: Shown) => void) {
  const choice = (label: string, chosen: number | null, set: (index: number) => Shown) =>
    html`<label class="field"
      ><span>${label}</span>
      <select @change=${(event: Event) => change(set((event.target as HTMLSelectElement).selectedIndex))}>
        ${encoders.map(({ name }, index) => html`<option ?selected=${index === chosen}>${name}</option>`)}
      </select></label
    >`;
  return html`<div class="pair">
    ${choice("Left", shown.encoder, (index) => ({ ...shown, encoder: index }))}
    ${choice("Right", shown.compare, (index) => ({ ...shown, compare: index }))}
  </div>`;
}
