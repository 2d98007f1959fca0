// <akin-batches>: how far AP of a whole set can be below AP of its batches, and what calibration changes (ROADMAP, eq. 8, 9).
//
// What tests may rely on: [data-batches=NAME] sliders, [data-bound=any | calibrated][data-value], .worst .batch.

import { html, nothing } from "lit";
import { state as reactive } from "lit/decorators.js";
import { sheet, ShadowElement } from "../elements/shadow.js";
import * as format from "../format.js";
import { loadScience, type Science } from "../science.js";
import style from "./steps.css";

/** All batches hold the same. */
interface Batches {
  readonly count: number;
  readonly goodPositives: number;
  readonly badPositives: number;
  readonly goodNegatives: number;
  readonly badNegatives: number;
}

const SLIDERS: readonly { readonly name: keyof Batches; readonly says: string; readonly least: number; readonly most: number }[] = [
  { name: "count", says: "batches", least: 2, most: 8 },
  { name: "goodPositives", says: "items of the species at α or above, in each", least: 0, most: 6 },
  { name: "badPositives", says: "items of the species below α", least: 0, most: 6 },
  { name: "goodNegatives", says: "strangers at β or below", least: 0, most: 6 },
  { name: "badNegatives", says: "strangers above β", least: 0, most: 6 },
];

export class AkinBatches extends ShadowElement {
  static override styles = [...ShadowElement.styles, sheet(style)];

  @reactive() private accessor science: Science | null = null;
  @reactive() private accessor batches: Batches = {
    count: 4,
    goodPositives: 3,
    badPositives: 0,
    goodNegatives: 3,
    badNegatives: 1,
  };

  override connectedCallback(): void {
    super.connectedCallback();
    // <akin-steps> around it says what went wrong.
    loadScience().then(
      (science) => (this.science = science),
      () => undefined,
    );
  }

  protected override render() {
    if (!this.science) return nothing;
    const { count, goodPositives, badPositives, goodNegatives, badNegatives } = this.batches;
    const batch = {
      good_positives: goodPositives,
      bad_positives: badPositives,
      good_negatives: goodNegatives,
      bad_negatives: badNegatives,
    };
    const { any_scores, calibrated } = this.science.gapBounds(Array.from({ length: count }, () => batch));
    return html`<section class="part" aria-labelledby="batches">
      <h2 id="batches">Batches and the whole set</h2>
      <p class="text">
        Training ranks one batch at a time. Suppose that every batch is perfect: the items of the query’s species come
        first, and AP is 1. All items together need not be: in one batch the species may have scores around 0.9, and in
        another around 0.5, where the first batch has its strangers. In the worst ranking one batch follows another.
      </p>
      ${this.worst()}
      <div class="side">
        <div>
          <dl class="metrics">
            ${this.bound("any", "Largest loss of AP, any scores", any_scores)}
            ${this.bound("calibrated", "with calibration", calibrated)}
          </dl>
          <p class="text">
            The first figure is ROADMAP’s equation 8. Its calibration asks items of the species for a score of at least
            α, and strangers for at most β. Then only strangers above β can come before an item at α or above: that is
            equation 9. Move the strangers to β or below, and AP of the batches is AP of the whole set.
          </p>
          <p class="note" data-testid="both">
            ${
              calibrated !== null && any_scores !== null && calibrated > any_scores
                ? "Here equation 9 gives the larger figure. It leaves out items of the species below α, which come before strangers, too. Both hold."
                : html`&nbsp;`
            }
          </p>
        </div>
        <div class="sliders">
          <fieldset>
            <legend>What each batch holds</legend>
            ${SLIDERS.map(({ name, says, least, most }) => this.slider(name, says, least, most))}
          </fieldset>
        </div>
      </div>
    </section>`;
  }

  /** The ranking with one batch after another. */
  private worst() {
    const { count, goodPositives, badPositives, goodNegatives, badNegatives } = this.batches;
    const items = [...Array<string>(goodPositives + badPositives).fill("own"), ...Array<string>(goodNegatives + badNegatives).fill("stranger")];
    const label = `The worst ranking: ${format.count(count, "batch", "batches")} one after another, each with ${format.count(goodPositives + badPositives, "item")} of the species before ${format.count(goodNegatives + badNegatives, "stranger")}.`;
    return html`<div class="worst" role="img" aria-label=${label}>
      ${Array.from({ length: count }, () => html`<span class="batch">${items.map((item) => html`<i class=${item}></i>`)}</span>`)}
    </div>`;
  }

  private bound(name: string, title: string, value: number | null) {
    return html`<div>
      <dt>${title}</dt>
      <dd data-bound=${name} data-value=${value ?? ""}>${format.score(value)}</dd>
    </div>`;
  }

  private slider(name: keyof Batches, says: string, least: number, most: number) {
    const value = this.batches[name];
    return html`<label class="slider">
      <span>${says}</span>
      <output>${value}</output>
      <input
        type="range"
        data-batches=${name}
        min=${least}
        max=${most}
        .value=${String(value)}
        @input=${(event: Event) => (this.batches = { ...this.batches, [name]: (event.target as HTMLInputElement).valueAsNumber })}
      />
    </label>`;
  }
}

if (!customElements.get("akin-batches")) customElements.define("akin-batches", AkinBatches);

declare global {
  interface HTMLElementTagNameMap {
    "akin-batches": AkinBatches;
  }
}
