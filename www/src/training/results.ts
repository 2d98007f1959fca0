// What stands below the pictures: the legend, and the scores as curves and as a table.

import { html, nothing } from "lit";
import * as format from "../format.js";
import { chart, curveOf } from "./curves.js";
import { labelsOf } from "./picture.js";
import type { Description } from "../messages/training.js";
import type { Run } from "./runs.js";
import { shapeName } from "./shapes.js";

/** The marks of the legend: circle, square, triangle, diamond. */
const KEYS = [
  "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0",
  "M-.9-.9H.9V.9H-.9Z",
  "M0-1.200 1.150.85H-1.150Z",
  "M0-1.300 1.300 0 0 1.300-1.300 0Z",
];

/** The marks of the orders, and the choice of a family to look at. */
export function legend(description: Description, shown: number | null, look: (family: number | null) => void) {
  const depth = description.levels.length;
  const orders = description.classes[0] ?? [];
  const families = description.classes[depth - 2] ?? [];
  const parent = (family: number) => {
    const member = description.held_out.findIndex((_, index) => labelsOf(description, index)[depth - 2] === family);
    return labelsOf(description, member)[0] ?? 0;
  };
  return html`<div class="legend-row">
    <ul class="legend" aria-label="Marks">
      ${orders.map(
        (name, group) =>
          html`<li>
            <svg class="key" viewBox="-1.5 -1.5 3 3" aria-hidden="true">
              <path class="marks" data-group=${group} data-held-out="0" d=${KEYS[group % KEYS.length] ?? ""}></path>
            </svg>
            ${name} <span class="visually-hidden">(${shapeName(group)})</span>
          </li>`,
      )}
    </ul>
    <label class="field">
      <span>Look at</span>
      <select
        data-control="family"
        @change=${(event: Event) => {
          const { value } = event.target as HTMLSelectElement;
          look(value === "" ? null : Number(value));
        }}
      >
        <option value="">all families</option>
        ${orders.map(
          (order, group) =>
            html`<optgroup label=${order}>
              ${families.map((name, family) =>
                parent(family) === group
                  ? html`<option value=${family} ?selected=${family === shown}>${name}</option>`
                  : nothing,
              )}
            </optgroup>`,
        )}
      </select>
    </label>
  </div>`;
}

/** The scores over the steps. */
export function scoreCurves(description: Description, runs: readonly Run[], step: number) {
  const depth = description.levels.length;
  const both = (score: Parameters<typeof curveOf>[3]) =>
    runs.flatMap(({ name, history }) => [curveOf(name, true, history, score), curveOf(name, false, history, score)]);
  const levels = Array.from({ length: depth }, (_, level) => depth - 1 - level);
  return html`<section aria-label="Curves">
    <h2>Scores</h2>
    <p class="note">Solid lines: creatures that the network learns from. Broken lines: held-out species.</p>
    <div class="curves">
      ${chart(
        "h_ap",
        "H-AP",
        both((scores) => scores.h_ap),
        step,
      )}
      ${levels.map((level) =>
        chart(
          `ap-${level + 1}`,
          `AP of ${description.levels[level] ?? ""}`,
          both((scores) => scores.ap[level]),
          step,
        ),
      )}
      ${chart(
        "gap",
        "Decomposability gap",
        runs.map(({ name, history }) => curveOf(name, false, history, (scores) => scores.gap)),
        step,
      )}
    </div>
  </section>`;
}

/** The scores after the last measured step. */
export function scoreTable(description: Description, runs: readonly Run[]) {
  const depth = description.levels.length;
  const rows: [metric: string, title: string, score: Parameters<typeof curveOf>[3]][] = [
    ["h_ap", "H-AP", (scores) => scores.h_ap],
    ...Array.from(
      { length: depth },
      (_, index) =>
        [
          `ap-${depth - index}`,
          `AP of ${description.levels[depth - 1 - index] ?? ""}`,
          (scores) => scores.ap[depth - 1 - index],
        ] as (typeof rows)[number],
    ),
    ["gap", "Decomposability gap", (scores) => scores.gap],
  ];
  return html`<div class="table" tabindex="0" role="group" aria-label="Scores">
    <table>
      <caption class="visually-hidden">
        Scores after the last measured step
      </caption>
      <thead>
        <tr>
          <td></td>
          ${runs.map(
            ({ name, history }) =>
              html`<th scope="col">
                  ${name}, learned<span class="visually-hidden"> after ${history.at(-1)?.step} steps</span>
                </th>
                <th scope="col">${name}, held out</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          ([metric, title, score]) =>
            html`<tr>
              <th scope="row">${title}</th>
              ${runs.map(({ name, history }) =>
                (["training", "held_out"] as const).map((part) => {
                  const last = history.at(-1);
                  const value = last ? score(last[part]) : null;
                  return html`<td
                    class="number"
                    data-run=${name}
                    data-part=${part}
                    data-metric=${metric}
                    data-value=${value ?? ""}
                  >
                    ${format.score(value)}
                  </td>`;
                }),
              )}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
