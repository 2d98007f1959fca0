// The loss of one network, with its settings.

import { html, nothing } from "lit";
import * as format from "../format.js";
import { change, COMPANIONS, fields, printChoice, type Choice } from "./choice.js";
import type { Tell } from "./controls.js";
import type { Offer, Space } from "../messages/training.js";
import type { Run } from "./runs.js";
import { BATCHES } from "./state.js";

/** What the settings that readers meet most often are called. A path may have more in front. */
const SYMBOLS: readonly [path: string, symbol: string, says: string, step: number][] = [
  ["lambda", "λ", "weight of the clustering", 0.05],
  ["relevance.alpha", "α", "how much more finer levels count", 0.5],
  ["temperature", "σ", "temperature", 0.01],
  ["margin", "δ", "margin", 0.05],
  ["proxies", "P", "number of proxies", 1],
  ["1.weight", "w", "weight of HIER", 0.1],
];

/** `surrogate.relevance.alpha` as words. */
const words = (path: string): string =>
  path
    .split(".")
    .filter((part) => !/^(terms|loss|\d+)$/.test(part))
    .join(", ")
    .replaceAll("_", " ");

export function lossControls(run: Run, offers: readonly Offer[], space: Space, tell: Tell, redraw: () => void) {
  const key = run.name === "A" ? "a" : "b";
  const set = (choice: Choice) => tell({ [key]: printChoice(choice), steps: 0 });
  const families = [...new Set(offers.map(({ family }) => family))];
  const companions = offers.filter(({ name }) => COMPANIONS.includes(name));
  const all = fields(run.choice);
  const symbolOf = (path: string) => SYMBOLS.find(([known]) => path === known || path.endsWith(`.${known}`)) ?? null;
  const first = all.filter(({ path, value }) => typeof value === "number" && symbolOf(path));
  const rest = all.filter((field) => !first.includes(field));
  // Two settings of the same name say where they belong.
  const context = (path: string, symbol: (typeof SYMBOLS)[number]) =>
    first.filter((other) => symbolOf(other.path) === symbol).length > 1
      ? ` (${words(path.split(".").slice(0, -1).join("."))})`
      : "";
  const input = ({ path, value }: (typeof all)[number]) => {
    const symbol = symbolOf(path);
    if (typeof value === "boolean") {
      return html`<label class="check">
        <input
          type="checkbox"
          data-setting="${run.name}-${path}"
          .checked=${value}
          @change=${(event: Event) => set(change(run.choice, path, (event.target as HTMLInputElement).checked))}
        />
        <span>${words(path)}</span>
      </label>`;
    }
    return html`<label class="field">
      <span>${symbol ? html`<i>${symbol[1]}</i> ${symbol[2]}${context(path, symbol)}` : words(path)}</span>
      <input
        type="number"
        step=${symbol?.[3] ?? "any"}
        data-setting="${run.name}-${path}"
        .value=${String(value)}
        @change=${(event: Event) => {
          const { valueAsNumber } = event.target as HTMLInputElement;
          if (Number.isFinite(valueAsNumber)) set(change(run.choice, path, valueAsNumber));
          else redraw();
        }}
      />
    </label>`;
  };
  return html`<div class="loss">
    <label class="field wide">
      <span>Loss</span>
      <select
        data-control="loss-${run.name}"
        @change=${(event: Event) => tell({ [key]: (event.target as HTMLSelectElement).value, steps: 0 })}
      >
        ${families.map(
          (family) =>
            html`<optgroup label=${words(family)}>
              ${offers
                .filter((offer) => offer.family === family)
                .map(
                  (offer) =>
                    html`<option value=${offer.name} ?selected=${offer.name === run.choice.offer.name}>
                      ${offer.title}
                    </option>`,
                )}
            </optgroup>`,
        )}
      </select>
    </label>
    <label class="field">
      <span>Batch</span>
      <select
        data-control="batch-${run.name}"
        @change=${(event: Event) => tell({ [`batch_${key}`]: (event.target as HTMLSelectElement).value, steps: 0 })}
      >
        ${BATCHES.map((batch) => html`<option value=${batch} ?selected=${batch === run.batch}>${batch}</option>`)}
      </select>
    </label>
    ${
      space === "disk" && !COMPANIONS.includes(run.choice.offer.name)
        ? html`<label class="field">
            <span>HIER beside it</span>
            <select
              data-control="companion-${run.name}"
              @change=${(event: Event) => {
                const { value } = event.target as HTMLSelectElement;
                set({
                  offer: run.choice.offer,
                  companion: companions.find(({ name }) => name === value) ?? null,
                  changes: new Map(),
                });
              }}
            >
              <option value="">none</option>
              ${companions.map(
                ({ name, title }) =>
                  html`<option value=${name} ?selected=${name === run.choice.companion?.name}>${title}</option>`,
              )}
            </select>
          </label>`
        : nothing
    }
    ${first.map(input)}
    ${
      rest.length > 0
        ? html`<details>
            <summary>${format.count(rest.length, "more setting")}</summary>
            <div class="rest">${rest.map(input)}</div>
          </details>`
        : nothing
    }
    <p class="note">${run.choice.offer.summary[0]?.toUpperCase()}${run.choice.offer.summary.slice(1)}.</p>
  </div>`;
}
