import { html, nothing } from "lit";
import * as format from "../format.js";
import type { Metrics } from "../protocol.js";
import { vars } from "../vars.js";

interface Row {
  /** A stable name for tests: `h_ap`, `ap-2`, … Levels count from 1, the coarsest. */
  key: string;
  name: string;
  description: string;
  value: (metrics: Metrics) => number | null;
  yesNo?: boolean;
}

/** The rows of the table, finest level first. */
export function metricRows(levels: readonly string[]): Row[] {
  const finest = levels.map((name, index) => ({ name, index })).reverse();
  return [
    {
      key: "h_ap",
      name: "H-AP",
      description: "The whole order in one number: high when near kin come first and strangers last.",
      value: (metrics) => metrics.h_ap,
    },
    ...finest.map(({ name, index }) => ({
      key: `ap-${index + 1}`,
      name: `AP ${name}`,
      description: `How early the items of the same ${name} come. All others count as equally wrong.`,
      value: (metrics: Metrics) => metrics.levels[index]?.ap ?? null,
    })),
    {
      key: "ndcg",
      name: "NDCG",
      description: "The nearness of all items, added up. Lower ranks count less.",
      value: (metrics) => metrics.ndcg,
    },
    {
      key: "asi",
      name: "ASI",
      description: "The overlap of the first n with the ideal first n, averaged over every n.",
      value: (metrics) => metrics.asi,
    },
    ...finest.map(({ name, index }) => ({
      key: `recall_at_1-${index + 1}`,
      name: `R@1 ${name}`,
      description: `Is the first result of the same ${name}?`,
      value: (metrics: Metrics) => metrics.levels[index]?.recall_at_1 ?? null,
      yesNo: true,
    })),
  ];
}

export interface Column {
  encoder: string;
  metrics: Metrics;
}

/** The scores of one ranking, or of two with their difference (second minus first). */
export function metricTable(columns: readonly Column[], levels: readonly string[]) {
  const [first, second] = columns;
  if (!first) return nothing;
  const gap = (row: Row) => {
    const [a, b] = [row.value(first.metrics), second ? row.value(second.metrics) : null];
    return a === null || b === null ? null : b - a;
  };
  return html`<table class="metrics" data-testid="metrics">
    <caption>
      ${second ? "Scores of the two rankings" : "Scores of this ranking"}
    </caption>
    <thead>
      <tr>
        <th scope="col">Score</th>
        ${columns.map(({ encoder }) => html`<th scope="col" class="number">${second ? encoder : "0 to 1"}</th>`)}
        ${second ? html`<th scope="col" class="number">Gain</th>` : nothing}
      </tr>
    </thead>
    <tbody>
      ${metricRows(levels).map(
        (row) =>
          html`<tr class=${row.key === "h_ap" ? "headline" : ""}>
              <th scope="row">${row.name}</th>
              ${columns.map(({ encoder, metrics }) => cell(row, row.value(metrics), encoder))}
              ${second ? html`<td class="number gain" data-sign=${Math.sign(gap(row) ?? 0)}>${format.difference(gap(row))}</td>` : nothing}
            </tr>
            <tr class="says">
              <td colspan=${second ? 4 : 2}>${row.description}</td>
            </tr>`,
      )}
    </tbody>
  </table>`;
}

function cell(row: Row, value: number | null, encoder: string) {
  const text = row.yesNo && value !== null ? (value > 0 ? "yes" : "no") : format.score(value);
  return html`<td
    class="number"
    data-metric=${row.key}
    data-encoder=${encoder}
    data-value=${value ?? ""}
    title=${value === null ? "No item of the gallery has the same class at this level, so there is no score." : ""}
  >
    ${text}${row.yesNo ? nothing : html`<i class="gauge" ${vars({ "--share": value ?? 0 })}></i>`}
  </td>`;
}
