// <akin-lesson number="3">: one part of the lesson, with its text, its playground and its task.
//
// What tests may rely on: [data-testid=task] with data-state="open | wrong | solved", [data-testid=verdict],
// [data-testid=hint], [data-testid=next], and the playground in it.

import { html, nothing, type PropertyValues } from "lit";
import { property, query, state as reactive } from "lit/decorators.js";
import { sheet, ShadowElement } from "../elements/shadow.js";
import { onLastRankings } from "../last-ranking.js";
import "../playground/akin-playground.js";
import type { AkinPlayground } from "../playground/akin-playground.js";
import type { State } from "../playground/state.js";
import { loadScience, type Science } from "../science.js";
import type { Scores } from "../messages/science.js";
import style from "./lesson.css";
import { PARTS } from "./parts.js";
import type { Part, Verdict } from "./work.js";

/** The parts that the reader has solved are remembered as long as the browser's tab. */
const KEY = "akin-lesson";

function readSolved(): ReadonlySet<number> {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return new Set(Array.isArray(stored) ? stored.filter((part): part is number => typeof part === "number") : []);
  } catch {
    return new Set();
  }
}

export class AkinLesson extends ShadowElement {
  static override styles = [...ShadowElement.styles, sheet(style)];

  /** The number of the part shown, from 1. */
  @property({ type: Number }) accessor number = 1;

  @reactive() private accessor verdict: Verdict | null = null;
  @reactive() private accessor solvedParts: ReadonlySet<number> = readSolved();
  @query("akin-playground") private accessor playground!: AkinPlayground;

  private science: Science | null = null;
  private start: { state: State; scores: readonly Scores[] } | null = null;

  override connectedCallback(): void {
    super.connectedCallback();
    // The last part shows the reader's own ranking.
    onLastRankings(() => this.number === PARTS.length && this.hasUpdated && this.begin());
    // The playground tells the reader when core cannot be loaded.
    loadScience().then(
      (science) => (this.science = science),
      () => undefined,
    );
  }

  private get current(): Part {
    return PARTS[this.number - 1] ?? (PARTS[0] as Part);
  }

  private begin(): void {
    const { state, names, query } = this.current.begin();
    this.verdict = null;
    this.start = null;
    this.playground.start(state, names, query);
    this.playground.light(this.current.lit ?? null);
    this.remember();
  }

  private readonly remember = (): void => {
    const { value: state, scores } = this.playground;
    if (!this.start && scores.length > 0) this.start = { state, scores };
  };

  private readonly check = (): void => {
    const { science, start, playground } = this;
    if (!science || !start) return;
    const { value: state, scores } = playground;
    const untouched =
      state.alpha === start.state.alpha &&
      state.orders.every(({ items }, which) => items.join() === start.state.orders[which]?.items.join());
    this.verdict = untouched ? null : this.current.check({ science, state, scores, start });
    if (!this.verdict?.solved || this.solvedParts.has(this.number)) return;
    this.solvedParts = new Set([...this.solvedParts, this.number]);
    try {
      sessionStorage.setItem(KEY, JSON.stringify([...this.solvedParts]));
    } catch {
      // Storage may be forbidden. The marks then last until the reader leaves the page.
    }
  };

  protected override updated(changed: PropertyValues): void {
    if (!changed.has("number")) return;
    this.begin();
    void this.current.load?.();
  }

  override render() {
    const { current, verdict, number } = this;
    const next = PARTS[number];
    const before = PARTS[number - 2];
    return html`<div class="lesson">
      <nav class="parts" aria-label="Parts of the lesson">
        <ol>
          ${PARTS.map(({ title }, index) => this.mark(title, index + 1))}
        </ol>
      </nav>
      <article class="text">
        <p class="eyebrow">Part ${number} of ${PARTS.length}</p>
        <h1 tabindex="-1">${current.title}</h1>
        ${current.text}
      </article>
      <div class="work">
        <section
          class="task"
          data-testid="task"
          data-state=${verdict === null ? "open" : verdict.solved ? "solved" : "wrong"}
          aria-labelledby="task-title"
        >
          <div class="task-head">
            <h2 id="task-title" class="eyebrow">Your task</h2>
            <button type="button" class="quiet" @click=${() => this.begin()}>Start again</button>
          </div>
          <p class="task-text">${current.task}</p>
          <p class="verdict" role="status" data-testid="verdict">
            ${verdict ? html`<b>${verdict.solved ? "Solved." : "Not yet."}</b> ${verdict.says}` : nothing}
          </p>
          <div class="task-foot">
            <details data-testid="hint">
              <summary>A hint</summary>
              <p>${current.hint}</p>
            </details>
            ${verdict?.solved && next ? html`<a class="button" data-testid="next" href=${address(number + 1)}>Go on</a>` : nothing}
          </div>
        </section>
        <akin-playground
          hide=${`${current.hide} ${this.hide}`}
          @change=${this.check}
          @ready=${this.remember}
        ></akin-playground>
      </div>
      ${current.after ?? nothing}
      <nav class="turn" aria-label="Turn to another part">
        ${before ? html`<a href=${address(number - 1)}>← ${before.title}</a>` : html`<span></span>`}
        ${next ? html`<a href=${address(number + 1)}>${next.title} →</a>` : nothing}
      </nav>
    </div>`;
  }

  private mark(title: string, number: number) {
    const solved = this.solvedParts.has(number);
    return html`<li>
      <a
        href=${address(number)}
        aria-current=${number === this.number ? "step" : "false"}
        data-part=${number}
        data-solved=${solved}
      >
        <span class="mark" aria-hidden="true">${number}</span>
        <span>${title}${solved ? html`<span class="visually-hidden">, solved</span>` : nothing}</span>
      </a>
    </li>`;
  }
}

const address = (part: number): string => (part === 1 ? "?view=lesson" : `?view=lesson&part=${part}`);

customElements.define("akin-lesson", AkinLesson);

declare global {
  interface HTMLElementTagNameMap {
    "akin-lesson": AkinLesson;
  }
}
