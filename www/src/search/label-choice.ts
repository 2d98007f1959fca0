import { html, nothing, type PropertyValues } from "lit";
import { property, state } from "lit/decorators.js";
import type { Collection } from "../collection.js";
import { LightElement } from "../elements/light.js";

/** The labels of the reader's own picture: one choice per level, coarse to fine. Fires `label` with the full path, or null. */
export class AkinLabels extends LightElement {
  @property({ attribute: false }) accessor collection: Collection | null = null;
  /** The picture. Another one clears the choice. */
  @property({ attribute: false }) accessor picture: unknown = null;
  @state() private accessor chosen: number[] = [];

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("picture")) this.chosen = [];
  }

  override render() {
    const { collection, chosen } = this;
    if (!collection) return nothing;
    return html`<details class="labels">
      <summary>I know what it is</summary>
      <p class="soft">Choose its class to score the ranking.</p>
      ${collection.classLevels.map((name, index) => {
        const parent = index === 0 ? null : (chosen[index - 1] ?? null);
        const open = index <= chosen.length;
        return html`<label class="field"
          ><span>${name}</span>
          <select ?disabled=${!open} data-level=${index + 1} @change=${(event: Event) => this.choose(index, event)}>
            <option value="" ?selected=${chosen[index] === undefined}>not chosen</option>
            ${
              open
                ? collection
                    .children(index + 1, parent)
                    .map(({ id, name }) => html`<option value=${id} ?selected=${chosen[index] === id}>${name}</option>`)
                : nothing
            }
          </select></label
        >`;
      })}
    </details>`;
  }

  private choose(index: number, event: Event): void {
    const { value } = event.target as HTMLSelectElement;
    this.chosen = value === "" ? this.chosen.slice(0, index) : [...this.chosen.slice(0, index), Number(value)];
    const { depth, classLevels } = this.collection ?? { depth: 0, classLevels: [] };
    const finest = this.chosen.at(-1);
    const isComplete = finest !== undefined && this.chosen.length === classLevels.length;
    const path = Uint32Array.from({ length: depth }, (_, level) => this.chosen[level] ?? finest ?? 0);
    this.dispatchEvent(new CustomEvent("label", { detail: isComplete ? path : null }));
  }
}
customElements.define("akin-labels", AkinLabels);
