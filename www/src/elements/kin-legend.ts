import { html } from "lit";
import { levelRows, relation } from "../kinship.js";
import { kinshipRing, type Reach } from "./kinship-ring.js";

/** The relations of a taxonomy, nearest first: ring, colour and word. Of many grades of relevance, some. */
export function kinLegend({ levels, reach }: { readonly levels: readonly string[]; readonly reach: Reach }) {
  const shared = [...levelRows(levels.length).map((index) => index + 1), 0];
  return html`<ul class="legend" aria-label="What the rings mean">
    ${shared.map((level) => html`<li>${kinshipRing(level, reach)} ${relation(level, levels)}</li>`)}
  </ul>`;
}
