import { html, nothing } from "lit";
import type { Collection } from "../collection.js";
import { modelCard } from "./model-card.js";
import { modelTable } from "./model-table.js";

/** What the encoders are, and how well they do over all queries. */
export function about({ manifest, levels }: Collection) {
  return html`<section class="about" aria-labelledby="about-title">
    <h2 id="about-title">About these encoders</h2>
    <div class="about-columns">
      <div>
        <p>
          A single ranking can be lucky. These are the means over all queries of the bundle, measured when it was
          exported.
        </p>
        <dl class="encoders">
          ${manifest.encoders.map(
            ({ name, description, dimension }) =>
              html`<div>
                <dt>${name}</dt>
                <dd>${description} <span class="soft">A picture becomes ${dimension} numbers.</span></dd>
              </div>`,
          )}
        </dl>
        <p><span class="soft">Licence of the bundle</span> ${manifest.licence}</p>
        ${manifest.model_card ? modelCardDetails(manifest.model_card) : nothing}
      </div>
      ${modelTable(manifest.encoders, levels)}
    </div>
  </section>`;
}

const modelCardDetails = (markdown: string) =>
  html`<details class="card" data-testid="model-card">
    <summary>Model card</summary>
    <div class="card-text">${modelCard(markdown)}</div>
  </details>`;
