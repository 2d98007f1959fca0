// The picture of one run: the space, a mark for each creature, and the drawing of each family at its mean.

import { html, nothing, svg } from "lit";
import { ringSegments } from "../elements/kinship-ring.js";
import { nearness, sharedLevel } from "../kinship.js";
import { vars } from "../vars.js";
import { geodesic, graticule, outline, place, project, type Placed, type Point, type Turn } from "./shapes.js";
import type { Description, Space, State } from "../messages/training.js";

/** The sheet of drawings, one for each species. */
export interface Sheet {
  address: string;
  side: number;
  columns: number;
  count: number;
}

export interface Picture {
  run: string;
  space: Space;
  description: Description;
  sheet: Sheet;
  state: State;
  turn: Turn;
  /** The family that the reader looks at. */
  family: number | null;
  /** The creature under the pointer. */
  creature: number | null;
  label: string;
}

/** Half the width of a picture, in units of the radius. The marks of a circle have rows outside of it. */
export const extentOf = (space: Space): number => (space === "circle" ? 1.32 : 1.06);
const MARK = 0.022;
/** The radius of a drawing. In the disk drawings leave room for the tree. */
const DRAWING = { circle: 0.12, sphere: 0.105, disk: 0.08 };

/** The classes of a creature, coarse to fine. */
export const labelsOf = ({ labels, levels }: Description, creature: number): number[] =>
  labels.slice(creature * levels.length, (creature + 1) * levels.length);

/** The place of each creature's mark, its number in its species included. */
export function placesOf({ space, description, state, turn }: Picture): Placed[] {
  const seen = new Map<number, number>();
  return description.held_out.map((heldOut, creature) => {
    const species = labelsOf(description, creature).at(-1) ?? 0;
    const number = seen.get(species) ?? 0;
    seen.set(species, number + 1);
    return place(space, state.points, creature, turn, { number, heldOut });
  });
}

/** A drawing cut out of the sheet, on a round paper of this radius. */
function drawing(
  { address, side, columns, count }: Sheet,
  species: number,
  { x, y }: { x: number; y: number },
  radius: number,
) {
  const column = species % columns;
  const row = Math.floor(species / columns);
  const rows = Math.ceil(count / columns);
  // The square of the drawing has its corners on the circle.
  const half = radius * Math.SQRT1_2;
  return svg`<circle cx=${x} cy=${y} r=${radius}></circle>
    <svg
      x=${x - half}
      y=${y - half}
      width=${2 * half}
      height=${2 * half}
      viewBox="${column * side} ${row * side} ${side} ${side}"
    >
      <image href=${address} width=${columns * side} height=${rows * side}></image>
    </svg>`;
}

export function picture(view: Picture) {
  const { space, description, sheet, turn, family, creature } = view;
  const extent = extentOf(space);
  const places = placesOf(view);
  const depth = description.levels.length;
  const inFamily = (index: number) => family === null || labelsOf(description, index)[depth - 2] === family;
  const paths = new Map<string, string>();
  for (const [index, at] of places.entries()) {
    const group = labelsOf(description, index)[0] ?? 0;
    const key = [group, description.held_out[index] ? 1 : 0, at.behind ? 1 : 0, inFamily(index) ? 0 : 1].join(" ");
    paths.set(key, (paths.get(key) ?? "") + outline(group, at, MARK));
  }
  const marks = [...paths].sort(([one], [other]) => order(one) - order(other));
  const at = creature === null ? undefined : places[creature];
  const group = creature === null ? 0 : (labelsOf(description, creature)[0] ?? 0);
  return html`<svg
    class="picture"
    viewBox="${-extent} ${-extent} ${2 * extent} ${2 * extent}"
    role="img"
    aria-label=${view.label}
    data-picture=${view.run}
  >
    <circle class="space" r="1"></circle>
    ${space === "sphere" ? svg`<path class="graticule" d=${graticule(turn)}></path>` : nothing}
    ${space === "disk" ? lines(view) : nothing} ${proxies(view)}
    ${marks.map(([key, d]) => {
      const [group, heldOut, behind, aside] = key.split(" ");
      return svg`<path class="marks" data-group=${group} data-held-out=${heldOut} data-behind=${behind} data-aside=${aside} d=${d}></path>`;
    })}
    ${families(view)}
    ${
      at && creature !== null
        ? svg`<path class="chosen" data-group=${group} d=${outline(group, at, MARK * 2.2)}></path>
            ${callout(sheet, labelsOf(description, creature)[depth - 1] ?? 0, at)}`
        : nothing
    }
  </svg>`;
}

/** What is behind is drawn first, then what is not looked at, then the held-out marks on top. */
function order(key: string): number {
  const [, heldOut, behind, aside] = key.split(" ").map(Number) as [number, number, number, number];
  return (behind ? 0 : 4) + (aside ? 0 : 2) + heldOut;
}

/** The drawing of a creature beside its mark, on the side of the centre. */
function callout(sheet: Sheet, species: number, { x, y }: Placed) {
  const length = Math.hypot(x, y) || 1;
  const reach = Math.max(0, length - 0.3) / length;
  const centre = { x: x * reach, y: y * reach };
  return svg`<g class="callout">${drawing(sheet, species, centre, 0.24)}</g>`;
}

/** The kinship of a family to the creature under the pointer, as a ring around the family's drawing. Strangers have none. */
function kinship(view: Picture, path: readonly number[], { x, y }: { x: number; y: number }, radius: number) {
  const { creature, description } = view;
  if (creature === null) return nothing;
  const depth = description.levels.length;
  const shared = sharedLevel(path.slice(0, depth - 1), labelsOf(description, creature).slice(0, depth - 1));
  if (shared === 0) return nothing;
  // The ring has a radius of 9 in a drawing of 24 × 24 units.
  const scale = (radius * 1.3) / 9;
  return svg`<g
    class="ring kin"
    data-shared=${shared}
    transform="translate(${x - 12 * scale} ${y - 12 * scale}) scale(${scale})"
    ${vars({ "--near": nearness(shared, depth) })}
  >${ringSegments(shared, depth)}</g>`;
}

/** The mean of each family's points, with its drawing. The mean of a family that is scattered is near the centre. */
function families(view: Picture) {
  const { space, description, sheet, state, turn, family } = view;
  const depth = description.levels.length;
  const dimension = space === "sphere" ? 3 : 2;
  const sums = (description.classes[depth - 2] ?? []).map(() => ({
    sum: [0, 0, 0],
    count: 0,
    group: 0,
    species: -1,
    path: [] as number[],
  }));
  for (const [index, heldOut] of description.held_out.entries()) {
    const labels = labelsOf(description, index);
    const entry = sums[labels[depth - 2] ?? 0];
    if (heldOut || !entry) continue;
    for (let axis = 0; axis < dimension; axis++) entry.sum[axis]! += state.points[index * dimension + axis] ?? 0;
    entry.count += 1;
    entry.group = labels[0] ?? 0;
    entry.path = labels;
    if (entry.species < 0) entry.species = labels[depth - 1] ?? 0;
  }
  return sums.map(({ sum, count, group, species, path }, index) => {
    const mean = sum.map((value) => value / Math.max(1, count)) as [number, number, number];
    const at = space === "sphere" ? project(mean, turn) : { x: mean[0], y: -mean[1], behind: false };
    // Inside the ring of marks, so that no drawing covers them.
    const shown = space === "circle" ? { x: at.x * 0.86, y: at.y * 0.86 } : at;
    const radius = DRAWING[space] * (index === family ? 1.5 : 1);
    return svg`<g class="family" data-family=${index} data-group=${group} data-behind=${at.behind ? 1 : 0} data-aside=${family === null || family === index ? 0 : 1}>
      ${drawing(sheet, species, shown, radius)} ${kinship(view, path, shown, radius)}
    </g>`;
  });
}

/** What the loss has learned: HIER's ancestors, and the proxies of classes. */
function proxies({ space, state, turn }: Picture) {
  const dimension = space === "sphere" ? 3 : 2;
  return state.proxies.map(({ ancestors, points }) => {
    const marks = Array.from({ length: points.length / dimension }, (_, index) => {
      const { x, y, behind } = place(space, points, index, turn, null);
      // On the circle proxies stand just inside of the marks.
      const [cx, cy] = space === "circle" ? [x * 0.95, y * 0.95] : [x, y];
      const size = ancestors ? 0.028 : 0.014;
      return behind
        ? ""
        : `M${(cx - size).toFixed(3)} ${cy.toFixed(3)}h${2 * size}M${cx.toFixed(3)} ${(cy - size).toFixed(3)}v${2 * size}`;
    });
    return svg`<path class="proxies" data-ancestors=${ancestors ? "true" : "false"} d=${marks.join("")}></path>`;
  });
}

/** Geodesics: a circle about the centre for depth, and the lines of the tree. */
function lines({ space, description, state, turn, family }: Picture) {
  const points = state.proxies.find(({ ancestors }) => ancestors)?.points;
  if (!state.tree || !points) return nothing;
  const at = (index: number): Point => {
    const { x, y } = place(space, points, index, turn, null);
    return [x, y];
  };
  const depth = description.levels.length;
  // The parents of each class follow from the creatures.
  const edges = new Map<string, { level: number; from: number; to: number; aside: boolean }>();
  const leaves: string[] = [];
  for (const index of description.held_out.keys()) {
    const labels = labelsOf(description, index);
    const aside = family !== null && labels[depth - 2] !== family;
    for (let level = depth - 1; level > 0; level--) {
      const from = state.tree.classes[level]?.[labels[level] ?? 0];
      const to = state.tree.classes[level - 1]?.[labels[level - 1] ?? 0];
      if (typeof from !== "number" || typeof to !== "number" || from === to) continue;
      const key = `${level} ${from} ${to}`;
      if (!edges.has(key) || !aside) edges.set(key, { level, from, to, aside });
    }
    const ancestor = state.tree.classes[depth - 1]?.[labels[depth - 1] ?? 0];
    if (typeof ancestor === "number" && !aside) {
      const { x, y } = place(space, state.points, index, turn, null);
      leaves.push(geodesic([x, y], at(ancestor)));
    }
  }
  return svg`<path class="leaves" d=${leaves.join("")}></path>
    ${[...edges.values()].map(
      ({ level, from, to, aside }) =>
        svg`<path class="branch" data-level=${level} data-aside=${aside ? 1 : 0} d=${geodesic(at(from), at(to))}></path>`,
    )}`;
}
