// <akin-report>: the scores of an evaluation. A score of the table is looked at in its classes and queries, the worst first.
//
// `data` holds the scores (report-data.ts). The event `change` follows every choice; `query` is then the chosen query, as
// its row among the embeddings.
//
// What tests may rely on: [data-metric][data-level] with data-value, .bin[data-count], [data-class], [data-query].

import { html, nothing } from "lit";
import { property, state } from "lit/decorators.js";
import { repeat } from "lit/directives/repeat.js";
import { sheet, ShadowElement } from "../elements/shadow.js";
import * as format from "../format.js";
import { vars } from "../vars.js";
import style from "./akin-report.css";
import { BINS, ReportScores, scoreText, type Filter, type ReportData } from "./report-data.js";

/** The number of rows that a list shows at first, and shows more each time. */
const ROWS = 10;

export class AkinReport extends ShadowElement {
  static override styles = [...ShadowElement.styles, sheet(style)];

  /** The row of the chosen query among the embeddings. */
  @property({ attribute: false }) accessor query: number | null = null;

  @state() private accessor scores: ReportScores | null = null;
  /** The score that is looked at. */
  @state() private accessor column = 0;
  @state() private accessor filter: Filter = { level: 1, of: null, bin: null };
  @state() private accessor shownClasses = ROWS;
  @state() private accessor shownQueries = ROWS;

  set data(data: ReportData) {
    this.scores = new ReportScores(data);
    this.column = 0;
    this.filter = { level: data.levels.length, of: null, bin: null };
  }

  private look(column: number): void {
    this.column = column;
    this.narrow({ bin: null });
  }

  private narrow(filter: Partial<Filter>): void {
    this.filter = { ...this.filter, ...filter };
    this.shownQueries = ROWS;
  }

  private choose(row: number): void {
    this.query = this.query === row ? null : row;
    this.dispatchEvent(new CustomEvent("change"));
  }

  protected override render() {
    const { scores } = this;
    if (!scores) return nothing;
    return html`${this.means(scores)}
      <p class="soft measured">${scores.data.measurement}</p>
      <div class="parts">
        <section>${this.classes(scores)}</section>
        <section>${this.spread(scores)} ${this.queries(scores)}</section>
      </div>`;
  }

  private means({ data }: ReportScores) {
    const { levels, metrics, means, columns } = data;
    return html`<div class="wide">
      <table class="scores means">
        <caption class="visually-hidden">
          Means over the queries. Choose a score to look at it.
        </caption>
        <thead>
          <tr>
            <th scope="col">level</th>
            ${metrics.map(({ name }) => html`<th scope="col" class="number">${name}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${["all levels", ...levels].map(
            (name, level) =>
              html`<tr>
                <th scope="row">${name}</th>
                ${metrics.map((metric, index) => {
                  const column = columns.findIndex((of) => of.metric === index && of.level === level);
                  const mean = means[level]?.[index] ?? null;
                  const text = scoreText(metric, mean);
                  if (column < 0) return html`<td class="number">${text}</td>`;
                  return html`<td class="number">
                    <button
                      type="button"
                      class="score"
                      aria-pressed=${column === this.column}
                      data-metric=${metric.name}
                      data-level=${level}
                      data-value=${mean ?? ""}
                      @click=${() => this.look(column)}
                    >
                      ${text}
                    </button>
                  </td>`;
                })}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
  }

  /** What is looked at: “h_ap”, “ap species”. */
  private columnName({ data }: ReportScores): string {
    const { metric = 0, level = 0 } = data.columns[this.column] ?? {};
    return `${data.metrics[metric]?.name} ${data.levels[level - 1] ?? ""}`.trim();
  }

  private classes(scores: ReportScores) {
    const { level, of } = this.filter;
    const rows = scores.classes(this.column, level);
    return html`<div class="head">
        <h3>Classes, the worst first</h3>
        <label class="field"
          >Level
          <select
            @change=${(event: Event) => {
              this.narrow({ level: Number((event.target as HTMLSelectElement).value), of: null });
              this.shownClasses = ROWS;
            }}
          >
            ${scores.data.levels.map(
              (name, index) => html`<option value=${index + 1} ?selected=${index + 1 === level}>${name}</option>`,
            )}
          </select>
        </label>
      </div>
      <table class="scores">
        <thead>
          <tr>
            <th scope="col">${scores.data.levels[level - 1]}</th>
            <th scope="col" class="number">queries</th>
            <th scope="col" class="number">${this.columnName(scores)}</th>
          </tr>
        </thead>
        <tbody>
          ${repeat(
            rows.slice(0, this.shownClasses),
            (row) => row.of,
            (row) =>
              html`<tr>
                <th scope="row">
                  <button
                    type="button"
                    class="row"
                    aria-pressed=${row.of === of}
                    data-class=${row.of}
                    @click=${() => this.narrow({ of: row.of === of ? null : row.of, bin: null })}
                  >
                    ${row.name}
                  </button>
                </th>
                <td class="number">${row.queries.toLocaleString("en")}</td>
                <td class="number">${scores.text(this.column, row.mean)}${this.gauge(scores, row.mean)}</td>
              </tr>`,
          )}
        </tbody>
      </table>
      ${this.more(rows.length, this.shownClasses, "class", "classes", (shown) => (this.shownClasses = shown))}`;
  }

  private gauge(scores: ReportScores, score: number) {
    return html`<i class="gauge" ${vars({ "--share": score / scores.most(this.column) })}></i>`;
  }

  /** How many queries have which score. */
  private spread(scores: ReportScores) {
    const { filter, column } = this;
    const counts = scores.counts(column, filter);
    const highest = Math.max(1, ...counts);
    const most = scores.most(column);
    const edge = (bin: number) => scores.text(column, (bin / BINS) * most);
    const says = (count: number, bin: number) =>
      `${format.count(count, "query", "queries")} from ${edge(bin)} to ${edge(bin + 1)}`;
    const of = filter.of === null ? "all queries" : scores.className(filter.level, filter.of);
    return html`<h3>${this.columnName(scores)} of ${of}</h3>
      <div class="bins" role="group" aria-label="How many queries have which score">
        ${counts.map(
          (count, bin) =>
            html`<button
              type="button"
              class="bin"
              aria-pressed=${filter.bin === bin}
              aria-label=${says(count, bin)}
              title=${says(count, bin)}
              data-count=${count}
              ?disabled=${count === 0}
              @click=${() => this.narrow({ bin: filter.bin === bin ? null : bin })}
            >
              <i ${vars({ "--height": count / highest })}></i>
            </button>`,
        )}
      </div>
      <p class="axis number" aria-hidden="true"><span>${edge(0)}</span><span>${edge(BINS)}</span></p>`;
  }

  private queries(scores: ReportScores) {
    const { column, filter } = this;
    const { levels, rows } = scores.data;
    const found = scores.queries(column, filter);
    const path = (query: number) => levels.map((_, index) => scores.className(index + 1, scores.of(query, index + 1)));
    return html`<h3>${format.count(found.length, "query", "queries")}, the worst first</h3>
      <table class="scores">
        <thead>
          <tr>
            <th scope="col">query</th>
            <th scope="col">${levels.join(" › ")}</th>
            <th scope="col" class="number">${this.columnName(scores)}</th>
          </tr>
        </thead>
        <tbody>
          ${repeat(
            found.slice(0, this.shownQueries),
            (query) => query,
            (query) =>
              html`<tr>
                <th scope="row">
                  <button
                    type="button"
                    class="row"
                    aria-pressed=${rows[query] === this.query}
                    data-query=${rows[query] ?? ""}
                    @click=${() => this.choose(rows[query] ?? query)}
                  >
                    ${scores.name(query)}
                  </button>
                </th>
                <td class="path">${path(query).join(" › ")}</td>
                <td class="number">${scores.text(column, scores.score(column, query))}</td>
              </tr>`,
          )}
        </tbody>
      </table>
      ${this.more(found.length, this.shownQueries, "query", "queries", (shown) => (this.shownQueries = shown))}`;
  }

  private more(count: number, shown: number, one: string, many: string, show: (shown: number) => void) {
    if (count <= shown) return nothing;
    const next = Math.min(count - shown, 5 * ROWS);
    return html`<button type="button" class="quiet more" @click=${() => show(shown + next)}>
      Show ${format.count(next, `more ${one}`, `more ${many}`)}
    </button>`;
  }
}

customElements.define("akin-report", AkinReport);

declare global {
  interface HTMLElementTagNameMap {
    "akin-report": AkinReport;
  }
}
