// The examples of the training ground, and the settings that both of its networks share.

import { html } from "lit";
import { EXAMPLES } from "./presets.js";
import type { Space } from "../messages/training.js";
import { SPACES } from "./protocol.js";
import { exampleOf, stateOf, type GroundSettings } from "./state.js";

/** Changes the settings. */
export type Tell = (values: Partial<GroundSettings>) => void;

const SPACE_NAMES: Record<Space, string> = { circle: "Circle", sphere: "Sphere", disk: "Poincaré disk" };

/** The examples, and what to look at in the one that is shown. */
export function exampleChoice(value: GroundSettings, tell: Tell) {
  const chosen = exampleOf(value);
  return html`<div class="presets" role="group" aria-label="Examples">
      ${EXAMPLES.map(
        (example) =>
          html`<button
            type="button"
            class="chip"
            data-example=${example.name}
            aria-pressed=${example === chosen ? "true" : "false"}
            @click=${() => tell({ ...stateOf(example), steps: 0, family: null })}
          >
            ${example.title}
          </button>`,
      )}
    </div>
    <p class="says" data-testid="says">
      ${chosen ? `${chosen.text} Press “Train” and watch 300 steps.` : "Settings of your own. Both networks start with the same weights."}
    </p>`;
}

/** The settings of both networks. `redraw` shows the last valid ones again. */
export function groundControls(value: GroundSettings, tell: Tell, redraw: () => void) {
  const { space, rate, seed } = value;
  return html`<div class="controls">
    <fieldset class="spaces">
      <legend>Embed on</legend>
      ${SPACES.map(
        (name) =>
          html`<label class="check">
            <input
              type="radio"
              name="space"
              data-control="space-${name}"
              .checked=${name === space}
              @change=${() => tell({ space: name, steps: 0 })}
            />
            <span>${SPACE_NAMES[name]}</span>
          </label>`,
      )}
    </fieldset>
    <label class="field">
      <span>Learning rate</span>
      <select
        data-control="rate"
        @change=${(event: Event) => tell({ rate: Number((event.target as HTMLSelectElement).value), steps: 0 })}
      >
        ${[...new Set([0.001, 0.002, 0.005, 0.01, 0.02, rate])]
          .sort((one, other) => one - other)
          .map((each) => html`<option value=${each} ?selected=${each === rate}>${each}</option>`)}
      </select>
    </label>
    <label class="field">
      <span>Seed</span>
      <input
        type="number"
        min="0"
        max="999999999"
        step="1"
        data-control="seed"
        .value=${String(seed)}
        @change=${(event: Event) => {
          const { valueAsNumber } = event.target as HTMLInputElement;
          if (Number.isInteger(valueAsNumber) && valueAsNumber >= 0) tell({ seed: valueAsNumber, steps: 0 });
          else redraw();
        }}
      />
    </label>
    <label class="check">
      <input
        type="checkbox"
        data-control="second"
        .checked=${value.b !== ""}
        @change=${(event: Event) => tell({ b: (event.target as HTMLInputElement).checked ? value.a : "", steps: 0 })}
      />
      <span>a second network beside it</span>
    </label>
  </div>`;
}
