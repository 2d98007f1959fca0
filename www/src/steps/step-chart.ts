// The steps as curves over t, and their slopes below on the same axis.

import { svg, type SVGTemplateResult } from "lit";
import type { StepCurve } from "../messages/science.js";
import { STEP_NAMES, type StepName } from "./losses.js";
import { figure, scale, ticks, type Scale } from "./scale.js";

/** The chart shows t from −REACH to REACH. */
export const REACH = 0.15;
const VALUES: readonly [number, number] = [-1.3, 4];
const SLOPES = { least: 30, most: 210 };

/** The names in the legend. */
const STEP_TITLES: Readonly<Record<StepName, string>> = {
  heaviside: "true step",
  sigmoid: "sigmoid of Smooth-AP",
  upper: "upper step of SupAP and HAPPIER",
  lower: "lower step of HAPPIER",
};

/** The solid curve is the lowest one, so that the dashed ones show where they meet it. */
const DRAWN: readonly StepName[] = ["upper", "sigmoid", "lower", "heaviside"];

/** Points of t for a curve, close together near 0 and around every corner. */
export function points(corners: readonly number[]): Float64Array {
  const even = Array.from({ length: 301 }, (_, index) => (index / 150 - 1) * REACH);
  const near = [0, ...corners].flatMap((corner) => [corner - 1e-6, corner, corner + 1e-6]);
  return Float64Array.from([...even, ...near].filter((t) => Math.abs(t) <= REACH).sort((a, b) => a - b));
}

/** t of another item, s_j − s_k, for the item k that the reader looks at. */
export interface Mark {
  readonly t: number;
  readonly item: number;
}

export interface StepChart {
  readonly width: number;
  readonly points: Float64Array;
  readonly curves: Readonly<Record<StepName, StepCurve>>;
  readonly marks: readonly Mark[];
}

const MARGIN = { left: 40, right: 12 };

/** A curve, without a line where it jumps. */
function path(points: Float64Array, values: readonly number[], x: Scale, y: Scale, jumps: boolean): string {
  const [low, high] = y.domain;
  const room = high - low;
  let previous: number | null = null;
  let text = "";
  values.forEach((value, index) => {
    const clipped = Math.max(low - room, Math.min(high + room, value));
    const t = points[index] ?? 0;
    const near = index > 0 && t - (points[index - 1] ?? 0) < 1e-5;
    const jump = jumps && near && previous !== null && Math.abs(clipped - previous) > room / 50;
    text += `${previous === null || jump ? "M" : "L"}${x(t).toFixed(2)} ${y(clipped).toFixed(2)}`;
    previous = clipped;
  });
  return text;
}

export function stepChart({ width, points, curves, marks }: StepChart): SVGTemplateResult {
  const columns = width < 560 ? 1 : 2;
  const legendRows = Math.ceil(STEP_NAMES.length / columns);
  const legendHeight = legendRows * 22 + 10;
  const values = { top: legendHeight + 18, height: width < 560 ? 190 : 240 };
  const slopes = { top: values.top + values.height + 40, height: 120 };
  const marksTop = slopes.top + slopes.height + 24;
  const right = width - MARGIN.right;
  const x = scale([-REACH, REACH], [MARGIN.left, right]);
  const near = marks.filter(({ t }) => Math.abs(t) <= REACH).sort((a, b) => a.t - b.t);
  const rowOf = rows(near, x);
  const height = marksTop + 44 + Math.max(0, ...rowOf) * 12;
  const yValue = scale(VALUES, [values.top + values.height, values.top]);
  const steepest = Math.max(SLOPES.least, ...STEP_NAMES.flatMap((name) => curves[name].derivatives)) * 1.08;
  const ySlope = scale([0, Math.min(SLOPES.most, steepest)], [slopes.top + slopes.height, slopes.top]);

  const legend = STEP_NAMES.map((name, index) => {
    const left = MARGIN.left + (index % columns) * ((right - MARGIN.left) / columns);
    const top = 12 + Math.floor(index / columns) * 22;
    return svg`<g data-step=${name}>
      <line class="curve" x1=${left} x2=${left + 30} y1=${top} y2=${top}></line>
      <text class="label" x=${left + 38} y=${top + 4}>${STEP_TITLES[name]}</text>
    </g>`;
  });
  const panel = (title: string, top: number, panelHeight: number, y: Scale, every: readonly number[]) => svg`
    <text class="title" x=${MARGIN.left} y=${top - 6}>${title}</text>
    ${every.map(
      (value) => svg`
        <line class="grid" x1=${MARGIN.left} x2=${right} y1=${y(value)} y2=${y(value)}></line>
        <text class="tick" x=${MARGIN.left - 6} y=${y(value) + 4} text-anchor="end">${figure(value)}</text>`,
    )}
    <line class="zero" x1=${x(0)} x2=${x(0)} y1=${top} y2=${top + panelHeight}></line>`;
  const curve = (which: "values" | "derivatives", y: Scale) =>
    DRAWN.map(
      (name) => svg`<path
        class="curve"
        data-step=${name}
        data-part=${which}
        d=${path(points, curves[name][which], x, y, true)}
      ></path>`,
    );
  const clip = (id: string, top: number, panelHeight: number) =>
    svg`<clipPath id=${id}><rect x=${MARGIN.left} y=${top} width=${right - MARGIN.left} height=${panelHeight}></rect></clipPath>`;

  return svg`<svg
    class="chart"
    data-testid="step-chart"
    role="img"
    aria-label="Four steps over the score difference t, with their slopes below"
    viewBox="0 0 ${width} ${height}"
    height=${height}
  >
    <defs>${clip("values", values.top, values.height)}${clip("slopes", slopes.top, slopes.height)}</defs>
    ${legend}
    ${panel("Value: how much an item counts as above", values.top, values.height, yValue, [-1, 0, 1, 2, 3, 4])}
    <g clip-path="url(#values)">${curve("values", yValue)}</g>
    ${panel("Slope: how strongly the loss pulls", slopes.top, slopes.height, ySlope, ticks(ySlope.domain, 4))}
    <g clip-path="url(#slopes)">${curve("derivatives", ySlope)}</g>
    ${ticks([-REACH, REACH], width < 560 ? 4 : 7).map(
      (t) =>
        svg`<text class="tick" x=${x(t)} y=${slopes.top + slopes.height + 16} text-anchor="middle">${figure(t)}</text>`,
    )}
    ${rug(near, rowOf, x, marksTop)}
    <text class="label" x=${right} y=${height - 5} text-anchor="end">score of another item − score of this item</text>
  </svg>`;
}

/** The row of each mark's number, so that no two numbers overlap. */
function rows(marks: readonly Mark[], x: Scale): number[] {
  const last: number[] = [];
  return marks.map(({ t }) => {
    const free = last.findIndex((end) => x(t) - end >= 14);
    const row = free < 0 ? last.length : free;
    last[row] = x(t);
    return row;
  });
}

/** Where the other items stand on the axis, seen from one item. */
function rug(marks: readonly Mark[], rowOf: readonly number[], x: Scale, top: number) {
  return svg`<g data-testid="marks">
    ${marks.map(
      ({ t, item }, index) =>
        svg`<line class="mark" x1=${x(t)} x2=${x(t)} y1=${top} y2=${top + 8}></line>
        <text class="tick" x=${x(t)} y=${top + 20 + (rowOf[index] ?? 0) * 12} text-anchor="middle">${item + 1}</text>`,
    )}
  </g>`;
}
