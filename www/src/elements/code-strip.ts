// Codes of hash encoders: their bits, and the bits in which two codes differ.

import { html, nothing, svg } from "lit";
import * as format from "../format.js";

/** The number of bits in a row of squares. */
const IN_ROW = 32;

/** The bits in which two codes differ, counted from 0. */
export const differingBits = (a: string, b: string): number[] =>
  [...a].flatMap((bit, place) => (bit === b[place] ? [] : [place]));

/** A code as squares, a filled one for 1; those that differ from another code are underlined. */
export function codeSquares(name: string, code: string, other: string | null = null) {
  const differing = other === null ? null : new Set(differingBits(code, other));
  const columns = Math.min(IN_ROW, code.length);
  const rows = Math.ceil(code.length / columns);
  const ones = [...code].filter((bit) => bit === "1").length;
  return html`<figure class="code">
    <figcaption>${name} <span class="soft">${format.count(code.length, "bit")}, ${ones} of them 1</span></figcaption>
    <svg viewBox="0 0 ${columns} ${1.4 * rows}" role="img" aria-label=${`${name}: ${code}`} data-code=${code}>
      ${[...code].map((bit, place) => {
        const [x, y] = [place % columns, 1.4 * Math.floor(place / columns)];
        return svg`<rect class=${bit === "1" ? "one" : "zero"} x=${x + 0.12} y=${y + 0.12} width="0.76" height="0.76"></rect>
          ${differing?.has(place) ? svg`<rect class="differs" x=${x + 0.06} y=${y + 1.02} width="0.88" height="0.22"></rect>` : nothing}`;
      })}
    </svg>
  </figure>`;
}

/** The bits of a result at a glance: tall where they differ from the query's. A text beside it gives their number. */
export function codeTicks(query: string, code: string) {
  const differing = new Set(differingBits(query, code));
  return html`<svg class="ticks" viewBox="0 0 ${code.length} 10" preserveAspectRatio="none" aria-hidden="true">
    ${[...code].map((_, place) =>
      differing.has(place)
        ? svg`<rect class="differs" x=${place + 0.1} y="0" width="0.8" height="10"></rect>`
        : svg`<rect class="same" x=${place + 0.1} y="7" width="0.8" height="3"></rect>`,
    )}
  </svg>`;
}
