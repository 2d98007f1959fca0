import { html, nothing } from "lit";
import * as format from "../format.js";
import type { Scores } from "../messages/science.js";

interface Row {
  /** A stable name for tests and for `hide`: `h_ap`, `ap-2`, … Levels count from 1, the coarsest. */
  key: string;
  name: string;
  says: string;
  value: (scores: Scores) => number | null;
  /** Where less is better, in levels and not from 0 to 1. */
  levels?: boolean;
}

/** The scores of a playground, the most important first. */
export function rows(levels: readonly string[], weighted: boolean): Row[] {
  const finest = levels.map((name, index) => ({ name, index })).reverse();
  return [
    { key: "h_ap", name: "H-AP", says: "the whole order, by how close each item is", value: (scores) => scores.h_ap },
    ...finest.map(({ name, index }) => ({
      key: `ap-${index + 1}`,
      name: `AP ${name}`,
      says: `right is the same ${name}, all else is wrong`,
      value: (scores: Scores) => scores.ap[index] ?? null,
    })),
    ...(weighted
      ? [
          {
            key: "weighted_ap",
            name: "Σ wAP",
            says: "the weighted mean of the APs",
            value: (scores: Scores) => scores.weighted_ap,
          },
        ]
      : []),
    {
      key: "recall_at_1",
      name: `R@1 ${levels.at(-1) ?? ""}`,
      says: "1 if the first result is right, else 0",
      value: (scores) => scores.recall_at_1.at(-1) ?? null,
    },
    {
      key: "ndcg",
      name: "NDCG",
      says: "nearness, discounted by the logarithm of the rank",
      value: (scores) => scores.ndcg,
    },
    { key: "asi", name: "ASI", says: "overlap with the ideal order, over all first n", value: (scores) => scores.asi },
    {
      key: "mistake_severity",
      name: "Mistake severity",
      says: "how many levels the first wrong item is away; less is better",
      value: (scores) => scores.mistake_severity,
      levels: true,
    },
  ];
}

const changeOf = ({ value, levels }: Row, now: Scores, then: Scores | null): string => {
  const [is, was] = [value(now), then && value(then)];
  if (is === null || was === null) return "";
  return levels ? format.difference(is - was).replace(/\.000$/, "") : format.difference(is - was);
};

const text = ({ value, levels }: Row, scores: Scores): string => {
  const is = value(scores);
  return levels && is !== null ? String(is) : format.score(is);
};

const sign = (change: string): number => (change === "" || /^0/.test(change) ? 0 : change.startsWith("+") ? 1 : -1);

/** A score with its change since the last move. */
function change(row: Row, now: Scores, then: Scores | null) {
  const by = changeOf(row, now, then);
  return html`<span class="change" data-sign=${sign(by)} data-change=${row.key}
    >${by === "0" || by === "0.000" ? "±0" : by}</span
  >`;
}

/** H-AP and the finest AP in large figures, above a ranking. */
export function headline(
  levels: readonly string[],
  scores: Scores | null,
  previous: Scores | null,
  shows: (part: string) => boolean,
) {
  const all = rows(levels, false);
  const shown = [all[1], all[0]].filter((row) => row !== undefined && shows(row.key === "h_ap" ? "h_ap" : "ap"));
  return html`<dl class="headline">
    ${shown.map((row) =>
      row
        ? html`<div>
            <dt>${row.name}</dt>
            <dd class="number" data-headline=${row.key} data-value=${(scores && row.value(scores)) ?? ""}>
              ${scores ? text(row, scores) : "–"} ${scores ? change(row, scores, previous) : nothing}
            </dd>
          </div>`
        : nothing,
    )}
  </dl>`;
}

/** All scores of one ranking with their changes, or of two rankings with the difference. */
export function scoreTable(
  levels: readonly string[],
  weighted: boolean,
  scores: readonly Scores[],
  previous: Scores | null,
  shows: (part: string) => boolean,
) {
  const [first, second] = scores;
  if (!first) return nothing;
  const shown = rows(levels, weighted).filter(({ key }) =>
    shows(key.startsWith("ap-") ? (key === `ap-${levels.length}` ? "ap" : "coarse-ap") : key),
  );
  return html`<table class="scores" data-testid="scores">
    <caption class="visually-hidden">
      Scores
    </caption>
    <thead>
      <tr>
        <th scope="col"><span class="visually-hidden">Score</span></th>
        <th scope="col" class="number">${second ? "First" : html`<span class="visually-hidden">Value</span>`}</th>
        <th scope="col" class="number">${second ? "Second" : html`<span>last move</span>`}</th>
      </tr>
    </thead>
    <tbody>
      ${shown.map(
        (row) =>
          html`<tr data-row=${row.key}>
            <th scope="row">${row.name}<span class="says">${row.says}</span></th>
            <td class="number" data-metric=${row.key} data-value=${row.value(first) ?? ""}>${text(row, first)}</td>
            <td class="number" data-metric2=${row.key} data-value=${second ? (row.value(second) ?? "") : ""}>
              ${second ? text(row, second) : change(row, first, previous)}
            </td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}
