import { html, nothing } from "lit";
import type { Collection } from "../collection.js";
import * as format from "../format.js";
import { modelCard } from "./model-card.js";
import { modelTable } from "./model-table.js";
import { BACKENDS } from "./backend-badge.js";
import type { EncoderEntry, Parity } from "../protocol.js";

/** What the encoders are, how well they do over all queries, and how far this page agrees with their trainer. */
export function about({ manifest, levels }: Collection, parities: readonly Parity[]) {
  return html`<section class="about" aria-labelledby="about-title">
    <h2 id="about-title">About these encoders</h2>
    <div class="about-columns">
      <div>
        ${
          manifest.encoders.some(({ report }) => report)
            ? html`<p>
                A single ranking can be lucky. These are the means over all queries of the bundle, measured when it was
                exported.
              </p>`
            : nothing
        }
        <dl class="encoders">
          ${manifest.encoders.map((encoder) => {
            const { name, description, dimension, onnx, licence } = encoder;
            const checks = parities.filter((parity) => parity.encoder === name);
            return html`<div>
              <dt>${name}</dt>
              <dd>${description} <span class="soft">A picture becomes ${dimension} numbers.</span></dd>
              ${onnx ? html`<dd class="soft">${onnxNote(encoder, manifest.files)}</dd>` : nothing}
              ${licence ? html`<dd><span class="soft">Licence of its weights</span> ${licence}</dd>` : nothing}
              ${checks.map((check) => html`<dd>${parityNote(check)}</dd>`)}
            </div>`;
          })}
        </dl>
        ${manifest.licence ? html`<p><span class="soft">Licence of the bundle</span> ${manifest.licence}</p>` : nothing}
        ${manifest.model_card ? modelCardDetails(manifest.model_card) : nothing}
      </div>
      ${modelTable(manifest.encoders, levels)}
    </div>
  </section>`;
}

/** What runs an encoder that is an ONNX file, and what its smaller weights cost. */
function onnxNote({ onnx }: EncoderEntry, files: readonly { path: string; bytes: number }[]) {
  const size = files.find(({ path }) => path === onnx?.file)?.bytes ?? 0;
  const loss = onnx?.int8
    ? ` Its weights were stored in 8 bits at export, which takes H-AP from ${format.score(onnx.int8.h_ap)} to ${format.score(onnx.int8.h_ap_int8)}.`
    : "";
  return `An ONNX file of ${format.bytes(size)}, which ONNX Runtime runs.${loss}`;
}

/** How far this page agrees with the trainer. */
const parityNote = ({ backend, pictures, cosine, bound, passed }: Parity) =>
  html`<span data-testid="parity" data-backend=${backend} data-passed=${passed} data-cosine=${cosine}>
    <span class="soft">This page and its trainer</span>
    ${passed ? "agree" : "do not agree"} on ${BACKENDS[backend]}: the cosine of their embeddings of ${pictures} pictures
    is at least <span class="number">${cosine.toFixed(6)}</span
    ><span class="soft">, and it must be at least <span class="number">${bound.toFixed(6)}</span>.</span>
  </span>`;

const modelCardDetails = (markdown: string) =>
  html`<details class="card" data-testid="model-card">
    <summary>Model card</summary>
    <div class="card-text">${modelCard(markdown)}</div>
  </details>`;
