import { svg, html, type TemplateResult } from "lit";
import { nearness } from "../kinship.js";
import { vars } from "../vars.js";

const CENTRE = 12;
const RADIUS = 9;
/** The gap between two segments in degrees. */
const GAP = 14;

function point(degrees: number): string {
  const radians = (degrees * Math.PI) / 180;
  return `${(CENTRE + RADIUS * Math.sin(radians)).toFixed(2)} ${(CENTRE - RADIUS * Math.cos(radians)).toFixed(2)}`;
}

/** The arc of segment `index` of `depth`, clockwise from the top, coarsest first. */
function arc(index: number, depth: number): string {
  const from = (index * 360) / depth + GAP / 2;
  const to = ((index + 1) * 360) / depth - GAP / 2;
  return `M${point(from)}A${RADIUS} ${RADIUS} 0 ${to - from > 180 ? 1 : 0} 1 ${point(to)}`;
}

/** The segments of a ring, for a drawing of 24 × 24 units. Those up to the level `most` may be shared. */
export const ringSegments = (shared: number, depth: number, most = shared) =>
  Array.from({ length: depth }, (_, index) => {
    const kind = index < shared ? "filled" : index < most ? "perhaps" : "open";
    return svg`<path class=${kind} d=${arc(index, depth)}></path>`;
  });

/**
 * The kinship ring: `depth` segments, filled from the coarsest as far as labels are shared, and dotted as far as they
 * may be shared where labels are unknown.
 * It is hidden from screen readers, because the word for the relation always stands beside it.
 */
export function kinshipRing(shared: number, depth: number, most = shared): TemplateResult {
  return html`<svg
    class="ring kin"
    viewBox="0 0 24 24"
    aria-hidden="true"
    data-shared=${shared}
    ${vars({ "--near": nearness(shared, depth) })}
  >
    ${ringSegments(shared, depth, most)}
  </svg>`;
}
