// The equations of H-AP (HAPPIER, eq. 2 and 3) and of AP (eq. 1), with the numbers of a ranking. The term of
// the item that the reader points at is lit.

import { html, mathml, nothing } from "lit";
import * as format from "../format.js";
import type { Scores, TiePolicy } from "../messages/science.js";
import { short } from "./explain.js";

/** More terms than this are not all written out. */
const TERMS = 9;

const number = (value: number) => mathml`<mn>${short(value)}</mn>`;

/** The places of the terms that are written; null stands for those between. */
function written(places: readonly number[], lit: number | null): (number | null)[] {
  if (places.length <= TERMS) return [...places];
  const keep = new Set([
    ...places.slice(0, 4),
    ...places.slice(-2),
    ...(lit !== null && places.includes(lit) ? [lit] : []),
  ]);
  return places.flatMap((place, at): (number | null)[] => {
    if (keep.has(place)) return [place];
    return keep.has(places[at - 1] ?? -1) ? [null] : [];
  });
}

const sum = (terms: readonly (number | null)[], draw: (place: number) => unknown) =>
  terms.map(
    (place, at) => mathml`${at > 0 ? mathml`<mo>+</mo>` : nothing}${place === null ? mathml`<mo>⋯</mo>` : draw(place)}`,
  );

const H_AP = mathml`<mrow><mi mathvariant="normal" class="name">H-AP</mi></mrow>`;
const REL_SUM = mathml`<mrow><munder><mo>∑</mo><mi>k</mi></munder><mtext>rel</mtext><mo stretchy="false">(</mo><mi>k</mi><mo stretchy="false">)</mo></mrow>`;

export function hApEquation(scores: Scores, lit: number | null) {
  const places = scores.items.flatMap(({ relevance }, place) => (relevance > 0 ? [place] : []));
  const spoken = `H-AP is one divided by the sum of the relevances, times the sum of H-rank by rank: ${format.score(scores.h_ap)}`;
  return html`<div
    class="equation"
    data-testid="h-ap-equation"
    role="group"
    aria-label="The equation of H-AP"
    tabindex="0"
  >
    <math display="block" aria-label=${spoken}>
      <mrow>
        ${H_AP}<mo>=</mo>
        <mfrac><mn>1</mn>${REL_SUM}</mfrac>
        <munder><mo>∑</mo><mi>k</mi></munder>
        <mfrac
          ><mrow><mtext>H-rank</mtext><mo stretchy="false">(</mo><mi>k</mi><mo stretchy="false">)</mo></mrow
          ><mrow><mtext>rank</mtext><mo stretchy="false">(</mo><mi>k</mi><mo stretchy="false">)</mo></mrow></mfrac
        >
      </mrow>
    </math>
    ${
      scores.h_ap === null
        ? html`<p class="soft">No item has a relevance, so there is no H-AP.</p>`
        : html`<math display="block" class="numbers" aria-hidden="true">
            <mrow>
              <mo>=</mo>
              <mfrac><mn>1</mn>${number(scores.relevance_sum)}</mfrac>
              <mrow>
                <mo stretchy="true">(</mo>
                ${sum(written(places, lit), (place) => {
                  const term = scores.items[place];
                  return mathml`<mrow class=${place === lit ? "term lit" : "term"} data-term=${place}>
                  <mfrac>${number(term?.h_rank ?? 0)}<mn>${term?.rank ?? 0}</mn></mfrac>
                </mrow>`;
                })}
                <mo stretchy="true">)</mo>
              </mrow>
              <mo>=</mo><mn class="result">${format.score(scores.h_ap)}</mn>
            </mrow>
          </math>`
    }
  </div>`;
}

/** How the lit item's term comes about. */
export function termOf(scores: Scores, lit: number | null, ties: TiePolicy) {
  const term = lit === null ? undefined : scores.items[lit];
  if (lit === null || !term)
    return html`<p class="soft">
      Point at an item, or walk to it with the keyboard, to see how its term comes about.
    </p>`;
  if (term.relevance === 0)
    return html`<p>
      The item at rank ${term.rank} is no kin of the query: its relevance is 0, so it has no term. It only pushes the
      items below it down.
    </p>`;
  const counts = new Map<string, number>();
  for (const [place, { relevance, rank }] of scores.items.entries()) {
    const tied = ties === "shared" && rank === term.rank && place !== lit;
    if (relevance === 0 || !(rank < term.rank || tied)) continue;
    const least = short(Math.min(relevance, term.relevance));
    counts.set(least, (counts.get(least) ?? 0) + 1);
  }
  const shared = [...counts].map(
    ([least, count]) => mathml`<mo>+</mo>${count > 1 ? mathml`<mn>${count}</mn><mo>·</mo>` : nothing}<mn>${least}</mn>`,
  );
  // Two formulas, so that they may stand in two lines on a narrow screen.
  return html`<p class="numbers">
      <math displaystyle="true">
        <mrow>
          <mtext>H-rank</mtext><mo>=</mo><mtext>rel</mtext><mo>+</mo>
          <munder><mo>∑</mo><mtext>above</mtext></munder>
          <mtext>min</mtext>
        </mrow>
      </math>
      <math>
        <mrow
          ><mo>=</mo>${number(term.relevance)}${shared}<mo>=</mo
          ><mrow class="term lit">${number(term.h_rank)}</mrow></mrow
        >
      </math>
    </p>
    <p>
      At rank ${term.rank} it gives
      <b class="number">${short(term.h_rank)} / ${term.rank} = ${short(term.quotient)}</b>. At best it gives its own
      relevance, <span class="number">${short(term.relevance)}</span>: when nothing less relevant stands above it.
    </p>`;
}

export function apEquation(scores: Scores) {
  const precisions = scores.curves.at(-1) ?? [];
  const value = scores.ap.at(-1) ?? null;
  if (value === null) return html`<p class="soft">No item is of the query’s own class, so there is no AP.</p>`;
  const shown = written(
    precisions.map((_, index) => index),
    null,
  );
  return html`<div class="equation" data-testid="ap-equation" role="group" aria-label="The equation of AP" tabindex="0">
    <math
      display="block"
      class="numbers"
      aria-label=${`AP is the mean of the precisions at the ranks of the right items: ${format.score(value)}`}
    >
      <mrow>
        <mi mathvariant="normal" class="name">AP</mi><mo>=</mo><mfrac><mn>1</mn><mn>${precisions.length}</mn></mfrac>
        <mrow>
          <mo stretchy="true">(</mo>
          ${sum(shown, (index) => {
            const { rank = 0, precision = 0 } = precisions[index] ?? {};
            return mathml`<mfrac><mn>${Math.round(precision * rank)}</mn><mn>${rank}</mn></mfrac>`;
          })}
          <mo stretchy="true">)</mo>
        </mrow>
        <mo>=</mo><mn class="result">${format.score(value)}</mn>
      </mrow>
    </math>
  </div>`;
}
