import { html } from "lit";
import { relation } from "../kinship.js";
import { kinshipRing } from "./kinship-ring.js";

/** All relations of a taxonomy, nearest first: ring, colour and word. */
export function kinLegend(levels: readonly string[]) {
  const shared = Array.from({ length: levels.length + 1 }, (_, index) => levels.length - index);
  return html`<ul class="legend" aria-label="What the rings mean">
    ${shared.map((level) => html`<li>${kinshipRing(level, levels.length)} ${relation(level, levels)}</li>`)}
  </ul>`;
}
