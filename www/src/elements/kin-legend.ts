import { html } from "lit";
import { relation } from "../kinship.js";
import { kinshipRing, type Reach } from "./kinship-ring.js";

/** All relations of a taxonomy, nearest first: ring, colour and word. */
export function kinLegend({ levels, reach }: { readonly levels: readonly string[]; readonly reach: Reach }) {
  const shared = Array.from({ length: levels.length + 1 }, (_, index) => levels.length - index);
  return html`<ul class="legend" aria-label="What the rings mean">
    ${shared.map((level) => html`<li>${kinshipRing(level, reach)} ${relation(level, levels)}</li>`)}
  </ul>`;
}
