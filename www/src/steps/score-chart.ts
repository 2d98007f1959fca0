// The score line with its items, and below it a panel for each loss with the move that it wants of each item.

import { svg, type SVGTemplateResult } from "lit";
import { ringSegments } from "../elements/kinship-ring.js";
import * as format from "../format.js";
import { nearness, relation } from "../kinship.js";
import { vars } from "../vars.js";
import { pushFigure, pushText, type Computed, type ShownLoss } from "./computed.js";
import { DEPTH, LEVELS, LOSSES } from "./losses.js";
import { figure, scale, ticks, type Scale } from "./scale.js";
import type { State } from "./state.js";

export interface ScoreChart {
  readonly width: number;
  readonly state: State;
  readonly computed: Computed;
  /** The scores from the left to the right end of the line. */
  readonly domain: readonly [number, number];
  /** The item that the reader looks at. */
  readonly selected: number;
  /** The scores after each training step so far, the first ones first. */
  readonly trace: readonly (readonly number[])[];
  readonly onFocus: (item: number) => void;
  readonly onKey: (item: number, event: KeyboardEvent) => void;
  readonly onPointer: (item: number, event: PointerEvent) => void;
}

const MARGIN = { left: 46, right: 46 };
/** The ring of an item is 24 units wide. */
const RING = 24;
const LANE = 28;
const ROW = 17;
const TRACE = 150;
/** The head of an arrow; shorter moves have none. */
const HEAD = 5;

/** The ends of the line on the chart, in pixels. */
export const lineOf = (width: number): readonly [number, number] => [MARGIN.left, width - MARGIN.right];

/** A domain of round numbers that holds all scores. */
export function domainOf(scores: readonly number[]): readonly [number, number] {
  const round = (value: number) => Number(value.toFixed(2));
  let low = Math.floor((Math.min(...scores) - 0.03) * 20) / 20;
  let high = Math.ceil((Math.max(...scores) + 0.03) * 20) / 20;
  if (high - low < 0.3) [low, high] = [low - 0.05, high + 0.05];
  return [round(Math.max(-1.05, low)), round(Math.min(1.05, high))];
}

/** The lane of each item: the lowest one in which no other item is too close. */
function lanes(scores: readonly number[], x: Scale): number[] {
  const taken: number[][] = [];
  const result: number[] = [];
  const order = scores.map((_, item) => item).sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0));
  for (const item of order) {
    const at = x(scores[item] ?? 0);
    let lane = 0;
    while (taken[lane]?.some((other) => Math.abs(other - at) < RING + 4)) lane += 1;
    (taken[lane] ??= []).push(at);
    result[item] = lane;
  }
  return result;
}

export function scoreChart(chart: ScoreChart): SVGTemplateResult {
  const { width, state, computed, domain, trace } = chart;
  const [left, right] = lineOf(width);
  const x = scale(domain, [left, right]);
  const lane = lanes(state.scores, x);
  const axis = 30 + (Math.max(0, ...lane) + 1) * LANE;
  const heightOf = (item: number) => axis - LANE / 2 - 3 - (lane[item] ?? 0) * LANE;
  const narrow = width < 620;
  const head = narrow ? 58 : 40;
  const panelHeight = head + state.scores.length * ROW + 12;
  const panelsTop = axis + 40;
  const traceTop = panelsTop + computed.losses.length * panelHeight;
  const height = traceTop + (trace.length > 1 ? TRACE + 44 : 0);

  return svg`<svg class="chart" data-testid="score-chart" viewBox="0 0 ${width} ${height}" height=${height} role="group"
    aria-label="The score line: ${state.scores.length} items of one query, and the push that each loss gives them">
    <text class="label" x=${left} y="14">lower score</text>
    <text class="label" x=${right} y="14" text-anchor="end">higher score →</text>
    ${ticks(domain, narrow ? 5 : 9).map(
      (score) => svg`
        <line class="grid" x1=${x(score)} x2=${x(score)} y1="24" y2=${height - 4}></line>
        <text class="tick" x=${x(score)} y=${axis + 18} text-anchor="middle">${figure(score)}</text>`,
    )}
    <line class="axis" x1=${left} x2=${right} y1=${axis} y2=${axis}></line>
    ${computed.losses.map((loss, index) => panel(chart, loss, x, panelsTop + index * panelHeight, narrow))}
    ${trace.length > 1 ? tracePanel(chart, x, traceTop) : ""}
    ${state.scores.map((score, item) => svg`<line class="stem" x1=${x(score)} x2=${x(score)} y1=${heightOf(item) + RING / 2} y2=${axis}></line>`)}
    ${state.scores.map((_, item) => dot(chart, item, x, heightOf(item)))}
  </svg>`;
}

const kin = (level: number) => vars({ "--near": nearness(level, DEPTH) });

/** What an assistive technology says of an item. */
export function itemText({ state, computed }: Pick<ScoreChart, "state" | "computed">, item: number): string {
  const level = state.levels[item] ?? 0;
  const pushes = computed.losses.map(({ name, push }) => `${LOSSES[name].title} ${pushText(push[item] ?? 0)}`);
  const score = format.score(state.scores[item]).replace("-", "−");
  return `score ${score}, ${relation(level, LEVELS)}, rank ${computed.ranks[item] ?? 0}. Pushed by ${pushes.join(", by ")}`;
}

/** An item on the score line. */
function dot(chart: ScoreChart, item: number, x: Scale, y: number) {
  const { state, domain, selected } = chart;
  const score = state.scores[item] ?? 0;
  const level = state.levels[item] ?? 0;
  return svg`<g
      class="item ring kin"
      role="slider"
      tabindex=${item === selected ? 0 : -1}
      aria-label="Item ${item + 1}"
      aria-valuemin=${domain[0]}
      aria-valuemax=${domain[1]}
      aria-valuenow=${Number(score.toFixed(4))}
      aria-valuetext=${itemText(chart, item)}
      aria-current=${item === selected ? "true" : "false"}
      data-item=${item}
      data-shared=${level}
      data-score=${score}
      transform="translate(${x(score)} ${y})"
      ${kin(level)}
      @focus=${() => chart.onFocus(item)}
      @keydown=${(event: KeyboardEvent) => chart.onKey(item, event)}
      @pointerdown=${(event: PointerEvent) => chart.onPointer(item, event)}
    >
      <circle class="touch" r="22"></circle>
      <circle class="paper" r="12"></circle>
      <g transform="translate(-12 -12)">${ringSegments(level, DEPTH)}</g>
      <text class="number" y="4" text-anchor="middle">${item + 1}</text>
    </g>`;
}

/** What one loss wants: an arrow from each item's score to its score after a training step. */
function panel(chart: ScoreChart, loss: ShownLoss, x: Scale, top: number, narrow: boolean) {
  const { width, state, selected } = chart;
  const [left, right] = lineOf(width);
  const { title, metric } = LOSSES[loss.name];
  const exact = loss.exact === null ? "–" : format.score(loss.exact);
  const below = loss.exact !== null && loss.value < loss.exact - 5e-4;
  const figures = `loss ${format.score(loss.value)} · 1 − ${metric} ${exact}${below ? " · below it: no upper bound" : ""}`;
  const head = narrow ? 58 : 40;
  return svg`<g class="panel" data-loss=${loss.name} data-value=${loss.value} data-exact=${loss.exact ?? ""}>
    <line class="rule" x1="0" x2=${width} y1=${top} y2=${top}></line>
    <text class="title" x="0" y=${top + 20}>${title}</text>
    <text class="label ${below ? "warn" : ""}" x=${narrow ? 0 : width} y=${top + (narrow ? 38 : 20)}
      text-anchor=${narrow ? "start" : "end"}>${figures}</text>
    ${state.scores.map((score, item) => {
      const level = state.levels[item] ?? 0;
      const y = top + head + item * ROW;
      const push = loss.push[item] ?? 0;
      const from = x(score);
      const to = Math.max(left - 18, Math.min(right + 18, x(score + push * state.rate)));
      const length = Math.abs(to - from);
      const sign = to > from ? 1 : -1;
      const tip = `M${to} ${y}L${to - sign * HEAD} ${y - 3.5}L${to - sign * HEAD} ${y + 3.5}Z`;
      // The figure stands on the side that the arrow points to, where there is room.
      const after = length < 1 ? from + 9 : to + sign * (length > HEAD ? 6 : 12);
      const fits = sign > 0 || length < 1 ? after < width - 40 : after > 64;
      const place = fits ? after : from - sign * 9;
      const onRight = (sign > 0 || length < 1) === fits;
      return svg`<g class="push kin" data-item=${item} data-push=${push} data-shared=${level}
        data-selected=${item === selected ? "true" : "false"} ${kin(level)}>
        <text class="tick" x="12" y=${y + 4} text-anchor="middle">${item + 1}</text>
        <line class="thread" x1="26" x2=${Math.max(26, from - 8)} y1=${y} y2=${y}></line>
        ${length >= 1 ? svg`<line class="arrow" x1=${from} x2=${length > HEAD ? to - sign * HEAD : to} y1=${y} y2=${y}></line>` : ""}
        ${length > HEAD ? svg`<path class="tip" d=${tip}></path>` : ""}
        <g class="ring" transform="translate(${from - 6} ${y - 6}) scale(0.5)"><circle class="paper" cx="12" cy="12" r="12"></circle>${ringSegments(level, DEPTH)}</g>
        <text class="figure" x=${place} y=${y + 4} text-anchor=${onRight ? "start" : "end"}>${pushFigure(push)}</text>
      </g>`;
    })}
  </g>`;
}

/** The way of every item through the training steps, from top to bottom. */
function tracePanel({ state, trace, width }: ScoreChart, x: Scale, top: number) {
  const start = top + 36;
  const y = (step: number) => start + (step / (trace.length - 1)) * TRACE;
  const [left, right] = lineOf(width);
  const steps = trace.length - 1;
  return svg`<g data-testid="trace">
    <line class="rule" x1="0" x2=${width} y1=${top} y2=${top}></line>
    <text class="title" x="0" y=${top + 20}>${format.count(steps, "step")} that follow ${LOSSES[state.follow].title}</text>
    <text class="tick" x=${left - 8} y=${start + 8} text-anchor="end">start</text>
    <text class="tick" x=${left - 8} y=${start + TRACE} text-anchor="end">now</text>
    <clipPath id="trace"><rect x=${left - 16} y=${start - 2} width=${right - left + 32} height=${TRACE + 4}></rect></clipPath>
    <g clip-path="url(#trace)">
      ${state.levels.map((level, item) => {
        const way = trace.map((scores, step) => `${x(scores[item] ?? 0).toFixed(1)} ${y(step).toFixed(1)}`);
        return svg`<path class="way kin" data-shared=${level} ${kin(level)} d=${`M${way.join("L")}`}></path>`;
      })}
    </g>
  </g>`;
}
