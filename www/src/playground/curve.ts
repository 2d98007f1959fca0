// The H-precision/H-recall curve, whose area is H-AP, and the plain precision and recall of the finest level.

import { html, nothing, svg } from "lit";
import * as format from "../format.js";
import { nearness } from "../kinship.js";
import type { Scores } from "../messages/science.js";
import { vars } from "../vars.js";

const SIZE = 220;
/** More columns than this have no lines between them, no ranks, and one colour. */
const MANY = 30;
const LEFT = 44;
const TOP = 10;
const BOTTOM = 34;

const x = (value: number): number => LEFT + value * SIZE;
const y = (value: number): number => TOP + (1 - value) * SIZE;

/** A column that is narrower has no rank. */
const NARROW = 14;

interface Point {
  rank: number;
  recall: number;
  precision: number;
}

/** One step for each point: from the recall before it to its own, at its precision. */
const steps = (points: readonly Point[]) =>
  points.map((point, at) => ({ ...point, from: points[at - 1]?.recall ?? 0 }));

const outline = (points: readonly Point[]): string =>
  steps(points)
    .map(({ from, recall, precision }, at) => `${at === 0 ? "M" : "L"}${x(from)} ${y(precision)}H${x(recall)}`)
    .join("");

interface Column extends Point {
  from: number;
}

const column = ({ from, recall, precision }: Column): string =>
  `M${x(from)} ${y(0)}V${y(precision)}H${x(recall)}V${y(0)}Z`;

/** The columns, each in the colour of its item's ring and with its rank; many of them as one path. */
function columns(points: readonly Point[], shared: ReadonlyMap<number, number>, depth: number) {
  if (points.length > MANY) return svg`<path class="area" data-many="true" d=${steps(points).map(column).join("")} />`;
  return steps(points).map((point) => {
    const level = shared.get(point.rank) ?? depth;
    return svg`<path
      class="area kin"
      data-rank=${point.rank}
      data-shared=${level}
      ${vars({ "--near": nearness(level, depth) })}
      d=${column(point)}
    />`;
  });
}

const ranks = (points: readonly Point[]) =>
  steps(points.length > MANY ? [] : points)
    .filter(({ from, recall }) => x(recall) - x(from) >= NARROW)
    .map(
      ({ rank, from, recall }) =>
        svg`<text class="column-rank" x=${x((from + recall) / 2)} y=${y(0) - 6} text-anchor="middle">${rank}</text>`,
    );

/** `shared` has the shared level of each item in the order of the list. `lit` is the rank of the item that the reader points at. */
export function curve(
  scores: Scores,
  levels: readonly string[],
  shared: readonly number[],
  lit: number | null,
  shows: (part: string) => boolean,
) {
  const hierarchical = scores.h_curve.map(({ rank, h_recall: recall, h_precision: precision }) => ({
    rank,
    recall,
    precision,
  }));
  const levelOf = new Map(scores.items.map(({ rank }, place) => [rank, shared[place] ?? 0]));
  const plain = scores.curves.at(-1) ?? [];
  const axis = (name: string) => (shows("h_ap") ? `H-${name}` : name);
  const name = levels.at(-1) ?? "class";
  const litColumn = steps(hierarchical).find(({ rank }) => rank === lit);
  const title = `The area under the steps of H-precision over H-recall is H-AP, ${format.score(scores.h_ap)}.`;
  return html`<figure class="curve" data-testid="curve">
    <svg viewBox=${`0 0 ${LEFT + SIZE + 12} ${TOP + SIZE + BOTTOM}`} role="img" aria-label=${title}>
      <g class="grid">
        ${[0, 0.5, 1].map(
          (tick) =>
            svg`<path d=${`M${x(0)} ${y(tick)}H${x(1)}`} />
              <text x=${LEFT - 7} y=${y(tick) + 4} text-anchor="end">${tick}</text>
              <text x=${x(tick)} y=${y(0) + 17} text-anchor="middle">${tick}</text>`,
        )}
      </g>
      ${
        shows("h_ap")
          ? svg`${columns(hierarchical, levelOf, levels.length)}
            ${litColumn ? svg`<path class="lit" data-rank=${litColumn.rank} d=${column(litColumn)} />` : nothing}
            <path class="h-line" d=${outline(hierarchical)} />`
          : nothing
      }
      <path class="plain-line" d=${outline(plain)} />
      ${shows("h_ap") ? ranks(hierarchical) : nothing}
      <text class="axis" x=${x(0.5)} y=${TOP + SIZE + 32} text-anchor="middle">${axis("recall")}</text>
      <text class="axis" x="-0" y="0" text-anchor="middle" transform=${`translate(11 ${y(0.5)}) rotate(-90)`}>
        ${axis("precision")}
      </text>
    </svg>
    <figcaption>
      ${shows("h_ap") ? html`<span class="key area-key">H-precision over H-recall, a column for each rank: the shaded area is H-AP, <b class="number">${format.score(scores.h_ap)}</b></span>` : nothing}
      <span class="key plain-key"
        >plain precision over recall of the ${name}: the area under it is AP,
        <b class="number">${format.score(scores.ap.at(-1))}</b></span
      >
    </figcaption>
  </figure>`;
}
