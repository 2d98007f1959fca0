import { svg, html, type TemplateResult } from "lit";
import { nearness } from "../kinship.js";
import { vars } from "../vars.js";

const CENTRE = 12;
const RADIUS = 9;
/** The largest gap between two segments in degrees, and as a share of a segment. */
const GAP = 14;
const GAP_SHARE = 0.4;

/** The levels of a ring: their number, or how far around the ring each reaches, from above 0 to 1, coarsest first. */
export type Reach = number | readonly number[];

const ends = (levels: Reach): readonly number[] =>
  typeof levels === "number" ? Array.from({ length: levels }, (_, index) => (index + 1) / levels) : levels;

function point(degrees: number): string {
  const radians = (degrees * Math.PI) / 180;
  return `${(CENTRE + RADIUS * Math.sin(radians)).toFixed(2)} ${(CENTRE - RADIUS * Math.cos(radians)).toFixed(2)}`;
}

/** An arc between two shares of the circle, clockwise from the top. */
function arc(start: number, end: number): string {
  const gap = Math.min(GAP, (end - start) * 360 * GAP_SHARE);
  const from = start * 360 + gap / 2;
  const to = end * 360 - gap / 2;
  return `M${point(from)}A${RADIUS} ${RADIUS} 0 ${to - from > 180 ? 1 : 0} 1 ${point(to)}`;
}

/** The segments of a ring, for a drawing of 24 × 24 units. Those up to the level `most` may be shared. */
export const ringSegments = (shared: number, levels: Reach, most = shared) =>
  ends(levels).map((end, index, all) => {
    const kind = index < shared ? "filled" : index < most ? "perhaps" : "open";
    return svg`<path class=${kind} d=${arc(all[index - 1] ?? 0, end)}></path>`;
  });

/**
 * The kinship ring: a segment for each level, filled from the coarsest as far as labels are shared, and dotted as far as
 * they may be shared where labels are unknown. With a matrix of relevance it is filled as far as the relevance reaches.
 * It is hidden from screen readers, because the word for the relation always stands beside it.
 */
export function kinshipRing(shared: number, levels: Reach, most = shared): TemplateResult {
  const depth = typeof levels === "number" ? levels : levels.length;
  return html`<svg
    class="ring kin"
    viewBox="0 0 24 24"
    aria-hidden="true"
    data-shared=${shared}
    ${vars({ "--near": nearness(shared, depth) })}
  >
    ${ringSegments(shared, levels, most)}
  </svg>`;
}
