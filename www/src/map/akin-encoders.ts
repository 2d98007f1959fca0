// <akin-encoders>: two encoders over all queries of a bundle. Where do they differ most, and what are the
// worst mistakes of each? The scores of each query were stored at export; the rankings of a chosen query
// come from the engine.
//
// What tests may rely on:
//   [data-testid=difference-list]  li[data-item], in order; data-list names the list
//   [data-testid=difference]       the chosen query: data-item, and per encoder ol[data-encoder] with
//                                  li[data-shared-level][data-worse]
//   [data-testid=difference-text]  what differs first, in words

import { html, nothing } from "lit";
import { property, state } from "lit/decorators.js";
import difference from "../elements/difference.css";
import { differenceText, furtherMark, levelsFurther } from "../elements/difference.js";
import { kinshipRing } from "../elements/kinship-ring.js";
import { ShadowElement, sheet } from "../elements/shadow.js";
import thumb from "../elements/thumb.css";
import "../elements/thumb.js";
import { sentence, toFailure, type Failure } from "../failure.js";
import * as format from "../format.js";
import { relation } from "../kinship.js";
import type { Ranked } from "../messages/engine.js";
import { isStopped, session } from "../session.js";
import { vars } from "../vars.js";
import styles from "./akin-encoders.css";
import type { GallerySource, QueryScores } from "./gallery-source.js";

/** Two encoders by their numbers. */
type Pair = readonly [number, number];

interface Row {
  item: number;
  /** H-AP by each encoder. */
  scores: readonly [number | null, number | null];
  /** The shared level of the first result by the encoder whose mistakes are listed. */
  shared: number | null;
}

/** The lists: queries that the first or the second encoder ranks better, and the worst mistakes of either. */
const LISTS = ["first", "second", "mistakes-first", "mistakes-second"] as const;
export type ListName = (typeof LISTS)[number];

const SHOWN = 24;
/** The number of results that are set side by side. */
const RESULTS = 10;

export class AkinEncoders extends ShadowElement {
  static override styles = [...ShadowElement.styles, sheet(thumb), sheet(difference), sheet(styles)];

  @property({ attribute: false }) accessor source: GallerySource | null = null;
  @property({ attribute: false }) accessor pair: Pair = [0, 1];
  @property() accessor list: ListName = "second";
  /** The query that is looked at. */
  @property({ attribute: false }) accessor query: number | null = null;

  @state() private accessor tables: readonly (QueryScores | null)[] = [];
  @state() private accessor problem: Failure | null = null;
  @state() private accessor shown = SHOWN;
  @state() private accessor answers: readonly Ranked[] = [];

  private loaded = "";
  private ranked = "";
  private readonly onLost = () => {
    this.ranked = "";
    this.requestUpdate();
  };

  override connectedCallback(): void {
    super.connectedCallback();
    session.addEventListener("lost", this.onLost);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    session.removeEventListener("lost", this.onLost);
  }

  protected override willUpdate(): void {
    if (!this.source) return;
    void this.load(this.source);
    void this.rank(this.source);
  }

  private name(which: 0 | 1): string {
    return this.source?.encoders[this.pair[which]]?.name ?? "";
  }

  private async load(source: GallerySource): Promise<void> {
    const key = this.pair.join();
    if (key === this.loaded) return;
    this.loaded = key;
    try {
      const tables = await Promise.all(this.pair.map((encoder) => source.queryScores(encoder)));
      if (key === this.loaded) this.tables = tables;
    } catch (error) {
      this.fail(error, () => (this.loaded = ""));
    }
  }

  /** Ranks the gallery by the chosen query with both encoders. */
  private async rank(source: GallerySource): Promise<void> {
    const { query, pair } = this;
    const key = query === null ? "" : `${pair.join()}/${query}`;
    if (key === this.ranked) return;
    this.ranked = key;
    this.answers = [];
    if (query === null) return;
    try {
      const answers: Ranked[] = [];
      for (const encoder of pair) answers.push(await source.rank(encoder, query, RESULTS));
      if (key === this.ranked) this.answers = answers;
    } catch (error) {
      if (key === this.ranked) this.fail(error, () => (this.ranked = ""));
    }
  }

  private fail(error: unknown, forget: () => void): void {
    const failure = toFailure(error);
    if (isStopped(failure)) forget();
    else this.problem = failure;
  }

  /** The queries of the list that is chosen, the most telling first. */
  private rows(): Row[] {
    const [first, second] = this.tables;
    if (!first || !second) return [];
    const mistaken = this.list === "mistakes-first" ? first : second;
    const rows = first.items().map((item): Row => {
      const scores = [first.value(item, "h_ap"), second.value(item, "h_ap")] as const;
      return { item, scores, shared: mistaken.value(item, "first_shared_level") };
    });
    const gain = ({ scores: [a, b] }: Row) =>
      a === null || b === null ? -Infinity : this.list === "first" ? a - b : b - a;
    if (this.list === "first" || this.list === "second") {
      return rows.filter((row) => gain(row) > 0).sort((a, b) => gain(b) - gain(a));
    }
    const own = this.list === "mistakes-first" ? 0 : 1;
    const depth = this.source?.collection.depth ?? 0;
    return rows
      .filter(({ shared }) => shared !== null && shared < depth)
      .sort((a, b) => (a.shared ?? 0) - (b.shared ?? 0) || (a.scores[own] ?? 1) - (b.scores[own] ?? 1));
  }

  private change(): void {
    this.dispatchEvent(new CustomEvent("akin-change", { bubbles: true, composed: true }));
  }

  // --- The page --------------------------------------------------------------------------------

  protected override render() {
    const { source, problem } = this;
    if (problem) return html`<p role="alert" class="empty">${sentence(problem.message)} ${sentence(problem.hint)}</p>`;
    if (!source || source.encoders.length < 2) {
      return html`<p class="empty">This bundle has one encoder. Export two runs into one bundle to compare them.</p>`;
    }
    if (this.tables.length > 0 && !this.tables.every(Boolean)) {
      return html`<p class="empty">
        This bundle does not hold the scores of each query. Write it again with <code>akin export</code>.
      </p>`;
    }
    const rows = this.rows();
    const texts: Record<ListName, string> = {
      second: `${this.name(1)} is better`,
      first: `${this.name(0)} is better`,
      "mistakes-first": `worst mistakes of ${this.name(0)}`,
      "mistakes-second": `worst mistakes of ${this.name(1)}`,
    };
    return html`<div class="bar">
        ${source.encoders.length > 2 ? ([0, 1] as const).map((which) => this.encoderChoice(source, which)) : nothing}
        <label class="field"
          >Queries
          <select
            data-testid="difference-choice"
            @change=${(event: Event) => {
              this.list = (event.target as HTMLSelectElement).value as ListName;
              this.shown = SHOWN;
              this.change();
            }}
          >
            ${LISTS.map((list) => html`<option value=${list} ?selected=${list === this.list}>where ${texts[list].replace("worst", "the worst")}</option>`)}
          </select></label
        >
        <p class="soft" role="status">${this.summary(rows)}</p>
      </div>
      <ul class="queries" data-testid="difference-list" data-list=${this.list}>
        ${rows.slice(0, this.shown).map((row) => this.card(source, row))}
      </ul>
      ${rows.length > this.shown ? html`<button type="button" class="quiet" @click=${() => (this.shown += SHOWN)}>Show more</button>` : nothing}
      ${this.query === null ? nothing : this.detail(source, this.query)}`;
  }

  private encoderChoice(source: GallerySource, which: 0 | 1) {
    return html`<label class="field"
      >${which === 0 ? "First" : "Second"}
      <select
        @change=${(event: Event) => {
          const chosen = Number((event.target as HTMLSelectElement).value);
          const [a, b] = this.pair;
          // Choosing the other encoder swaps the two.
          this.pair = which === 0 ? [chosen, chosen === b ? a : b] : [chosen === a ? b : a, chosen];
          this.change();
        }}
      >
        ${source.encoders.map(({ name }, at) => html`<option value=${at} ?selected=${at === this.pair[which]}>${name}</option>`)}
      </select></label
    >`;
  }

  private summary(rows: readonly Row[]): string {
    const [table] = this.tables;
    if (!table) return "Reading the scores of each query.";
    const all = format.count(table.count, "query", "queries");
    return this.list.startsWith("mistakes")
      ? `${rows.length.toLocaleString("en")} of ${all} have a first result of another class. The most severe come first.`
      : `${rows.length.toLocaleString("en")} of ${all}. The largest differences of H-AP come first.`;
  }

  private card({ collection, sprites }: GallerySource, { item, scores: [a, b], shared }: Row) {
    const { levels } = collection;
    const isMistake = this.list.startsWith("mistakes");
    const difference = a === null || b === null ? null : b - a;
    return html`<li data-item=${item}>
      <button
        type="button"
        aria-pressed=${item === this.query}
        @click=${() => {
          this.query = item;
          this.change();
          void this.updateComplete.then(() => this.renderRoot.querySelector<HTMLElement>("#detail-title")?.focus());
        }}
      >
        <akin-thumb .picture=${{ item, sprites }}></akin-thumb>
        <span class="query-name">${collection.name(item)}</span>
        ${
          isMistake
            ? html`<span class="line"
                >first: ${kinshipRing(shared ?? 0, collection.reach)} ${relation(shared ?? 0, levels)}</span
              >`
            : html`<span class="line number"
                ><span>${format.score(a)} → ${format.score(b)}</span>
                <strong>${format.difference(difference)}</strong></span
              >`
        }
      </button>
    </li>`;
  }

  private detail(source: GallerySource, query: number) {
    const { collection, sprites } = source;
    const [first, second] = this.answers;
    return html`<section
      class="detail"
      aria-labelledby="detail-title"
      data-testid="difference"
      data-item=${query}
      aria-busy=${!second}
    >
      <header>
        <akin-thumb .picture=${{ item: query, sprites }}></akin-thumb>
        <div>
          <h3 id="detail-title" tabindex="-1">${collection.name(query)}</h3>
          <p class="soft">${collection.above(query)}</p>
          <p data-testid="difference-text">
            ${first && second ? differenceText([this.name(0), this.name(1)], [first.results, second.results], collection.levels) : "Ranking the gallery with both encoders."}
          </p>
        </div>
      </header>
      ${
        first && second
          ? ([0, 1] as const).map((which) =>
              this.ranking(source, which, which === 0 ? first : second, which === 0 ? second : first),
            )
          : nothing
      }
    </section>`;
  }

  private ranking({ collection, sprites }: GallerySource, which: 0 | 1, { results, metrics }: Ranked, other: Ranked) {
    const { depth, levels } = collection;
    return html`<div class="ranking">
      <h4>${this.name(which)} <span class="number soft">H-AP ${format.score(metrics?.overall["h_ap"])}</span></h4>
      <ol data-encoder=${this.name(which)}>
        ${results.map(({ item, shared_level, may_share }, rank) => {
          const shared = shared_level ?? 0;
          const further = levelsFurther(results, other.results, rank);
          return html`<li
            data-item=${item}
            data-shared-level=${shared}
            data-worse=${further > 0}
            ${vars({ "--near": depth <= 1 ? 1 : Math.max(0, (shared - 1) / (depth - 1)) })}
          >
            <akin-thumb .picture=${{ item, sprites }}></akin-thumb>
            <span class="line"
              ><span class="number">${rank + 1}</span> ${kinshipRing(shared, collection.reach, may_share ?? 0)}
              ${relation(shared, levels, may_share ?? 0)}</span
            >
            <span class="query-name">${collection.name(item)}</span>
            ${furtherMark(further)}
          </li>`;
        })}
      </ol>
    </div>`;
  }
}
customElements.define("akin-encoders", AkinEncoders);

declare global {
  interface HTMLElementTagNameMap {
    "akin-encoders": AkinEncoders;
  }
}
