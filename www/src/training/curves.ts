import { svg, html } from "lit";
import * as format from "../format.js";
import type { Measures } from "../messages/training.js";

/** One curve of a chart: a run, and whether its creatures are held out. */
export interface Curve {
  run: string;
  heldOut: boolean;
  points: { step: number; value: number }[];
}

const WIDTH = 260;
const HEIGHT = 120;
const LEFT = 26;
const RIGHT = 22;
const TOP = 10;
const BOTTOM = 20;

/** The curve of one score over the steps. */
export function curveOf(
  run: string,
  heldOut: boolean,
  history: readonly Measures[],
  score: (scores: Measures["training"]) => number | null | undefined,
): Curve {
  const points = history.flatMap((measures) => {
    const value = score(heldOut ? measures.held_out : measures.training);
    return value === null || value === undefined ? [] : [{ step: measures.step, value }];
  });
  return { run, heldOut, points };
}

/** A small chart from 0 to 1. Solid lines are the creatures that the network learns from, broken ones the held-out species. */
export function chart(name: string, title: string, curves: readonly Curve[], steps: number) {
  const last = Math.max(50, steps);
  const x = (step: number) => LEFT + (step / last) * (WIDTH - LEFT - RIGHT);
  const y = (value: number) => TOP + (1 - Math.min(1, Math.max(0, value))) * (HEIGHT - TOP - BOTTOM);
  const path = ({ points }: Curve) =>
    points.map(({ step, value }, index) => `${index ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const says = curves
    .flatMap(({ run, heldOut, points }) => {
      const end = points.at(-1);
      return end ? [`${run}, ${heldOut ? "held out" : "learned"}: ${format.score(end.value)}`] : [];
    })
    .join("; ");
  return html`<figure class="curve-chart">
    <figcaption>${title}</figcaption>
    <svg
      viewBox="0 0 ${WIDTH} ${HEIGHT}"
      role="img"
      aria-label="${title} after ${steps} steps. ${says}"
      data-chart=${name}
    >
      ${[0, 0.5, 1].map(
        (value) =>
          svg`<path class="grid" d="M${LEFT} ${y(value)}H${WIDTH - RIGHT}"></path>
            <text class="tick" x=${LEFT - 5} y=${y(value)} dy="0.35em" text-anchor="end">${value}</text>`,
      )}
      <text class="tick" x=${LEFT} y=${HEIGHT - 4}>0</text>
      <text class="tick" x=${WIDTH - RIGHT} y=${HEIGHT - 4} text-anchor="end">${last} steps</text>
      ${curves.map(
        (curve) =>
          svg`<path class="curve" data-run=${curve.run} data-held-out=${curve.heldOut ? "true" : "false"} d=${path(curve)}></path>`,
      )}
      ${ends(curves, y).map(({ run, at }) => svg`<text class="end" data-run=${run} x=${x(steps) + 5} y=${at} dy="0.35em">${run}</text>`)}
    </svg>
  </figure>`;
}

/** Where the names of the runs stand, at the ends of their solid lines and not on one another. */
function ends(curves: readonly Curve[], y: (value: number) => number): { run: string; at: number }[] {
  const places = curves
    .filter(({ heldOut }) => !heldOut)
    .flatMap(({ run, points }) => {
      const end = points.at(-1);
      return end ? [{ run, at: y(end.value) }] : [];
    })
    .sort((one, other) => one.at - other.at);
  const [upper, lower] = places;
  if (upper && lower && lower.at - upper.at < 12) {
    const middle = (upper.at + lower.at) / 2;
    [upper.at, lower.at] = [middle - 6, middle + 6];
  }
  return places;
}
