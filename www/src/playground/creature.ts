// The creatures of the playground. Related classes look alike: the group gives the body plan, the family
// its shape, the species its marking and the variety its ornament.

import { html, svg, type SVGTemplateResult, type TemplateResult } from "lit";

/** The words for the values of each attribute. The name of a creature is made of them, finest first. */
export const ATTRIBUTES = [
  ["beetle", "snail", "fish", "bird", "crab"],
  ["round", "long", "broad", "small"],
  ["spotted", "striped", "plain", "banded", "ringed"],
  ["smooth", "crowned", "dotted"],
] as const;

/** Body plan, shape, marking, ornament. A value beyond the words of its attribute starts them again. */
export type Look = readonly [number, number, number, number];

interface Body {
  x: number;
  y: number;
  rx: number;
  ry: number;
}

/** Every body plan: its body, whose size the shape changes, and the parts that hang on it. */
const PLANS: { body: Body; parts: (body: Body) => SVGTemplateResult }[] = [
  {
    body: { x: 32, y: 39, rx: 13, ry: 15 },
    parts: ({ x, y, rx, ry }) => {
      const top = y - ry;
      const legs = [-0.55, 0.1, 0.7].map((at) => {
        const [inner, height] = [rx * Math.sqrt(1 - at * at), y + at * ry];
        const fall = at * 9;
        return `M${x - inner} ${height}l-8 ${fall - 3}l-3 5M${x + inner} ${height}l8 ${fall - 3}l3 5`;
      });
      return svg`<path d=${`${legs.join("")}M${x - 3} ${top - 7}c-1-5-5-8-9-7M${x + 3} ${top - 7}c1-5 5-8 9-7`} />
        <path class="tint" d=${`M${x - 7} ${top + 2}c-1-7 3-10 7-10s8 3 7 10z`} />
        <circle class="solid" cx=${x - 3} cy=${top - 3} r="1.4" /><circle class="solid" cx=${x + 3} cy=${top - 3} r="1.4" />`;
    },
  },
  {
    body: { x: 37, y: 33, rx: 16, ry: 15 },
    parts: ({ x, y, rx, ry }) => {
      const foot = y + ry + 3;
      const head = x - rx - 10;
      return svg`<path class="tint" d=${`M${head - 3} ${foot - 12}c-2 6 0 12 8 12h${rx + 24}c-2-5-7-6-12-6H${x - rx + 2}c-5 0-4-5-5-9-1-4-7-4-8 3z`} />
        <path d=${`M${head - 2} ${foot - 14}l-4-8M${head + 3} ${foot - 16}l2-8`} />
        <circle class="solid" cx=${head - 6} cy=${foot - 23} r="1.6" /><circle class="solid" cx=${head + 5} cy=${foot - 25} r="1.6" />`;
    },
  },
  {
    body: { x: 28, y: 33, rx: 18, ry: 12 },
    parts: ({ x, y, rx, ry }) => {
      const tail = x + rx - 1;
      return svg`<path class="tint" d=${`M${tail} ${y}l13-10c-2 6-2 14 0 20z`} />
        <path class="tint" d=${`M${x - 4} ${y - ry + 1}c3-6 8-7 12-6-1 3-2 5-2 8zM${x} ${y + ry - 1}c2 4 5 6 9 6 0-3-1-5-1-7z`} />
        <circle class="solid" cx=${x - rx + 6} cy=${y - 3} r="1.7" />`;
    },
  },
  {
    body: { x: 33, y: 36, rx: 15, ry: 12 },
    parts: ({ x, y, rx, ry }) => {
      const [hx, hy] = [x - rx + 1, y - ry + 1];
      return svg`<path d=${`M${x - 4} ${y + ry - 1}v9l-4 2M${x - 4} ${y + ry + 8}l4 2M${x + 5} ${y + ry - 1}v9l-4 2M${x + 5} ${y + ry + 8}l4 2`} />
        <path class="tint" d=${`M${x + rx - 3} ${y - 5}l12-7 1 8-11 7z`} />
        <path class="tint" d=${`M${hx - 6} ${hy - 1}l-8 3 8 3z`} />
        <circle class="tint" cx=${hx} cy=${hy} r="7.5" /><circle class="solid" cx=${hx - 2} cy=${hy - 2} r="1.5" />`;
    },
  },
  {
    body: { x: 32, y: 38, rx: 16, ry: 11 },
    parts: ({ x, y, rx, ry }) => {
      const claw = (side: number) =>
        `M${x + side * (rx - 3)} ${y - ry + 5}c${side * 9}-3 ${side * 9}-9 ${side * 6}-14c${side * 7} 1 ${side * 9} 8 ${side * 4} 13z`;
      const legs = [0.1, 0.5, 0.85].map((at) => {
        const [inner, height] = [rx * Math.sqrt(1 - at * at), y + at * ry];
        return `M${x - inner} ${height}l-9 3-2 6M${x + inner} ${height}l9 3 2 6`;
      });
      return svg`<path d=${legs.join("")} /><path class="tint" d=${claw(-1)} /><path class="tint" d=${claw(1)} />
        <path d=${`M${x - 5} ${y - ry + 1}v-6M${x + 5} ${y - ry + 1}v-6`} />
        <circle class="solid" cx=${x - 5} cy=${y - ry - 6} r="1.8" /><circle class="solid" cx=${x + 5} cy=${y - ry - 6} r="1.8" />`;
    },
  },
];

const SHAPES: readonly (readonly [number, number])[] = [
  [1, 1],
  [0.72, 1.18],
  [1.2, 0.82],
  [0.74, 0.74],
];

/** The marking inside of a body. */
const MARKINGS: ((body: Body) => SVGTemplateResult | string)[] = [
  ({ x, y, rx, ry }) =>
    svg`${[
      [-0.45, -0.35],
      [0.4, -0.45],
      [-0.1, 0.15],
      [0.5, 0.3],
      [-0.5, 0.45],
      [0.1, 0.7],
    ].map(([dx = 0, dy = 0]) => svg`<circle class="solid" cx=${x + dx * rx} cy=${y + dy * ry} r="2.1" />`)}`,
  ({ x, y, rx, ry }) =>
    svg`<path d=${[-0.6, -0.2, 0.2, 0.6].map((at) => `M${x + at * rx} ${y - ry * Math.sqrt(1 - at * at)}V${y + ry * Math.sqrt(1 - at * at)}`).join("")} />`,
  () => "",
  ({ x, y, rx, ry }) =>
    svg`<path class="band" d=${[-0.45, 0, 0.45].map((at) => `M${x - rx * Math.sqrt(1 - at * at)} ${y + at * ry}H${x + rx * Math.sqrt(1 - at * at)}`).join("")} />`,
  ({ x, y, rx, ry }) =>
    svg`<ellipse cx=${x} cy=${y} rx=${rx * 0.66} ry=${ry * 0.66} /><ellipse cx=${x} cy=${y} rx=${rx * 0.3} ry=${ry * 0.3} />`,
];

/** The ornament above or around a body. */
const ORNAMENTS: ((body: Body) => SVGTemplateResult | string)[] = [
  () => "",
  ({ x, y, rx, ry }) => svg`<path d=${`M${x + rx * 0.35} ${y - ry - 1}l1-6 3 4 3-5 2 5 4-3-1 6`} />`,
  ({ x, y, rx, ry }) =>
    svg`${[-0.8, 0, 0.8].map((turn) => svg`<circle class="solid" cx=${x + (rx + 5) * Math.sin(2 + turn)} cy=${y - (ry + 5) * Math.cos(2 + turn)} r="1.4" />`)}`,
];

const pick = <Value>(list: readonly Value[], index: number): Value => list[index % list.length] as Value;

/** The drawing of a creature. Its name stands beside it, so that screen readers need not see it. */
export function creature([plan, shape, marking, ornament]: Look): TemplateResult {
  const { body, parts } = pick(PLANS, plan);
  const [wide, high] = pick(SHAPES, shape);
  const shaped = { ...body, rx: body.rx * wide, ry: body.ry * high };
  return html`<svg class="creature" viewBox="0 0 64 64" aria-hidden="true">
    ${parts(shaped)}
    <ellipse class="tint" cx=${shaped.x} cy=${shaped.y} rx=${shaped.rx} ry=${shaped.ry} />
    ${pick(MARKINGS, marking)(shaped)}${pick(ORNAMENTS, ornament)(shaped)}
  </svg>`;
}
