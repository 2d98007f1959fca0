import { html, nothing } from "lit";
import * as format from "../format.js";
import { atLevel, levelRows } from "../kinship.js";
import type { MetricInfo, Metrics } from "../messages/engine.js";
import { vars } from "../vars.js";

interface Row {
  /** A stable name for tests: `h_ap`, `ap-2`, `recall_at_1-3`, … Levels count from 1, the coarsest. */
  key: string;
  name: string;
  description: string;
  /** The greatest value; 0 is the least. */
  most: number;
  greaterIsBetter: boolean;
  yesNo: boolean;
  value: (metrics: Metrics) => number | null;
}

/** What a metric says, in plain words; `same` is "the same species", or for a metric over all levels empty. */
const DESCRIPTIONS: Record<string, (same: string, k: string) => string> = {
  h_ap: () => "The whole order in one number: high when near kin come first and strangers last.",
  weighted_ap: () => "The mean of AP over all levels.",
  ap: (same) => `How early the items of ${same} come. All others count as equally wrong.`,
  map_at_r: (same) => `The same as AP for the first results only: as many as there are items of ${same}.`,
  ndcg: () => "The nearness of all items, added up. Lower ranks count less.",
  asi: () => "The overlap of the first n with the ideal first n, averaged over every n.",
  mistake_severity: () => "How many levels the first wrong result is away from the query’s own class.",
  recall: (same, k) => (k === "1" ? `Is the first result of ${same}?` : `Is one of the first ${k} results of ${same}?`),
  precision: (same, k) => `The share of the first ${k} results that are of ${same}.`,
  r_precision: (same) => `The share of ${same} among as many first results as it has items.`,
  mrr: (same) => `1 divided by the rank of the first result of ${same}.`,
};

/** The rows of the table, in the order of the bundle; those of one metric in the order of `shown`, which has indices of `levels`. */
function metricRows(described: readonly MetricInfo[], levels: readonly string[], shown: readonly number[]): Row[] {
  return described.flatMap((metric) => {
    const [kind = "", k = ""] = metric.name.split("@");
    const title = `${metric.title.charAt(0).toUpperCase()}${metric.title.slice(1)}.`;
    const common = {
      most: metric.unit === "levels" ? levels.length : 1,
      greaterIsBetter: metric.greater_is_better,
      yesNo: kind === "recall",
    };
    const key = metric.name.replace("@", "_at_");
    const describe = DESCRIPTIONS[kind];
    if (!metric.per_level) {
      const value = (metrics: Metrics) => metrics.overall[metric.name] ?? null;
      return [{ ...common, key, name: metric.label, description: describe?.("", k) ?? title, value }];
    }
    return shown.map((index) => ({
      ...common,
      key: `${key}-${index + 1}`,
      name: `${metric.label} ${levels[index] ?? ""}`,
      description: describe?.(atLevel(levels[index] ?? ""), k) ?? title,
      value: (metrics: Metrics) => metrics.levels[index]?.[metric.name] ?? null,
    }));
  });
}

/** The scores of one ranking by key, with their names; those of one metric finest level first. */
export const metricCells = (metrics: Metrics, levels: readonly string[]) =>
  metricRows(metrics.described, levels, [...levels.keys()].reverse()).map(({ key, name, value }) => ({
    key,
    name,
    value: value(metrics),
  }));

export interface Column {
  encoder: string;
  metrics: Metrics;
}

/** The scores of one ranking, or of two with their difference (second minus first). Of many levels, some. */
export function metricTable(columns: readonly Column[], levels: readonly string[]) {
  const [first, second] = columns;
  if (!first) return nothing;
  const gap = (row: Row) => {
    const [a, b] = [row.value(first.metrics), second ? row.value(second.metrics) : null];
    return a === null || b === null ? null : b - a;
  };
  const rows = metricRows(first.metrics.described, levels, levelRows(levels.length));
  const range = rows.every(({ most }) => most === 1) ? "0 to 1" : "Value";
  const gain = (row: Row) => Math.sign(gap(row) ?? 0) * (row.greaterIsBetter ? 1 : -1);
  return html`<table class="metrics" data-testid="metrics">
    <caption>
      ${second ? "Scores of the two rankings" : "Scores of this ranking"}
    </caption>
    <thead>
      <tr>
        <th scope="col">Score</th>
        ${columns.map(({ encoder }) => html`<th scope="col" class="number">${second ? encoder : range}</th>`)}
        ${second ? html`<th scope="col" class="number">Gain</th>` : nothing}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr class=${row.key === "h_ap" ? "headline" : ""}>
              <th scope="row">${row.name}</th>
              ${columns.map(({ encoder, metrics }) => cell(row, row.value(metrics), encoder))}
              ${second ? html`<td class="number gain" data-sign=${gain(row)}>${format.difference(gap(row))}</td>` : nothing}
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
    ${text}${row.yesNo ? nothing : html`<i class="gauge" ${vars({ "--share": (value ?? 0) / row.most })}></i>`}
  </td>`;
}
