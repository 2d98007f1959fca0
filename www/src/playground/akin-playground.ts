// <akin-playground>: a ranked list whose items the reader moves, and what AP, H-AP and other scores make of it.
//
//   <akin-playground state="ranking=23013&alpha=2" hide="controls tree"></akin-playground>
//
// `state` holds the same parameters as the address of the playground (parameters.ts). Parts that `hide` can
// name: presets, query, tools, tree, bars, h-rank (the bars then show relevances), scores, why, ap-equation,
// equation, curve, controls, relevance-kind and ties in them, tree-editor, and of the scores ap, coarse-ap, h_ap,
// recall_at_1, ndcg, asi, mistake_severity.
//
// The event `change` follows every change that the reader has finished; `value` and `scores` then hold it.
//
// What tests may rely on: .items [data-item][data-place][data-shared], .grip, [data-by="-1 | 1"], [data-metric],
// [data-metric2] and [data-headline] with data-value in full precision, [data-change], [data-testid=why] with
// data-delta, [data-term], [data-preset], [data-do=undo | redo | ideal | shuffle | best_same_ap | worst_same_ap].

import { html, nothing, type PropertyValues } from "lit";
import { property, state as reactive } from "lit/decorators.js";
import { inline } from "../elements/inline.js";
import { kinshipRing } from "../elements/kinship-ring.js";
import { saveChartButtons } from "../elements/save-chart.js";
import { sheet, ShadowElement } from "../elements/shadow.js";
import { sentence, toFailure, type Failure } from "../failure.js";
import * as format from "../format.js";
import { nearness, relation } from "../kinship.js";
import { loadScience, type Science } from "../science.js";
import type { Goal, Scores } from "../messages/science.js";
import { vars } from "../vars.js";
import { controls } from "./controls.js";
import { creature } from "./creature.js";
import { curve } from "./curve.js";
import { followPointer } from "./drag.js";
import { apEquation, hApEquation, termOf } from "./equation.js";
import { explainChange, explainMove, type Explanation } from "./explain.js";
import { begin, record, redo, undo, type History } from "./history.js";
import { parseState } from "./parameters.js";
import style from "./playground.css";
import { PRESETS } from "./presets.js";
import type { AkinRankedList } from "./ranked-list.js";
import "./ranked-list.js";
import { headline, scoreTable } from "./score-table.js";
import {
  hasTies,
  itemLevel,
  move,
  orderLevels,
  orderOf,
  ranking,
  reorder,
  settings,
  shuffle,
  toggleTie,
  type State,
} from "./state.js";
import { className, type Node } from "./taxonomy.js";
import { tree } from "./tree.js";

/** What the reader sees of one state. */
interface Shown {
  readonly state: State;
  /** The scores of every ranking; none before core is there. */
  readonly scores: readonly Scores[];
  /** The scores of the active ranking before the last change. */
  readonly previous: Scores | null;
  readonly why: Explanation | null;
  /** The difference of H-AP that `why` explains. */
  readonly delta: number | null;
}

/** An item that the reader holds, and the place where it is now. */
interface Held {
  readonly from: number;
  readonly to: number;
  readonly shown: Shown;
}

/** Levels with these names are those of creatures, which have drawings and names. */
const CREATURE_LEVELS = ["group", "family", "species", "variety", "strain"];
const GOALS: readonly { goal: Goal; title: string; says: string }[] = [
  { goal: "ideal", title: "Ideal order", says: "The items stand in their ideal order, by decreasing relevance." },
  {
    goal: "best_same_ap",
    title: "Same AP, best H-AP",
    says: "The query’s own class kept its ranks. The others stand in the best order that is left.",
  },
  {
    goal: "worst_same_ap",
    title: "Same AP, worst H-AP",
    says: "The query’s own class kept its ranks. The others stand in the worst order that is left.",
  },
];

export class AkinPlayground extends ShadowElement {
  static override styles = [...ShadowElement.styles, sheet(style)];

  /** The first state, as the parameters of an address. Later changes are in `value`. */
  @property() accessor state = "";

  @reactive() private accessor shown: Shown = unscored(parseState(() => null));
  @reactive() private accessor held: Held | null = null;
  @reactive() private accessor active = 0;
  /** The item under the pointer or the focus. */
  @reactive() private accessor lit: number | null = null;
  /** The item of each ranking that Tab reaches. */
  @reactive() private accessor stops: readonly [number, number] = [0, 0];
  @reactive() private accessor editingTree = false;
  @reactive() private accessor renaming: Node | null = null;
  @reactive() private accessor tying = false;
  @reactive() private accessor failed: Failure | null = null;
  @reactive() private accessor spoken = "";
  /** The names of the items, where they are not creatures. */
  @reactive() private accessor names: readonly string[] = [];

  private queryName = "";
  private history: History<State> = begin(this.shown.state);
  private science: Science | null = null;
  private seed = 1;
  /** What gets the focus after the next drawing: moving a row in the document takes it away. */
  private refocus: { which: number; item: number; selector: string } | null = null;

  // --- For the page around it ----------------------------------------------------------------------

  get value(): State {
    return this.history.present;
  }

  set value(state: State) {
    this.start(state);
  }

  /** The scores of every ranking. Empty until core is there. */
  get scores(): readonly Scores[] {
    return this.shown.scores;
  }

  /** Begins anew with a state. `names` are those of the items, and `queryName` is the query's, where they are not creatures. */
  start(state: State, names: readonly string[] = [], queryName = ""): void {
    this.names = names;
    this.queryName = queryName;
    this.held = null;
    this.active = 0;
    this.lit = null;
    this.stops = [orderOf(state, 0).items[0] ?? 0, orderOf(state, 1).items[0] ?? 0];
    this.history = begin(state);
    this.shown = this.scored(state);
    this.tying = hasTies(state);
  }

  /** Moves an item of a ranking, as a reader would; places from 0. */
  moveItem(which: number, from: number, to: number): void {
    const shown = this.afterMove(which, from, to);
    if (!shown) return;
    this.active = which;
    this.commit(shown);
  }

  /** Lights the item in a place of the active ranking. */
  light(place: number | null): void {
    this.lit = place === null ? null : (orderOf(this.shown.state, this.active).items[place] ?? null);
  }

  override connectedCallback(): void {
    super.connectedCallback();
    void this.load();
  }

  private async load(): Promise<void> {
    this.failed = null;
    try {
      this.science = await loadScience();
      this.shown = this.scored(this.history.present);
      this.dispatchEvent(new CustomEvent("ready"));
    } catch (error) {
      this.failed = toFailure(error);
    }
  }

  // --- Changes -------------------------------------------------------------------------------------

  private scored(state: State): Shown {
    const { science } = this;
    if (!science) return unscored(state);
    return {
      ...unscored(state),
      scores: state.orders.map((_, which) => science.score(ranking(state, which), settings(state))),
    };
  }

  /** What the reader would see after a move in the present state. */
  private afterMove(which: number, from: number, to: number): Shown | null {
    const before = this.history.present;
    const { science } = this;
    const state = move(before, which, from, to);
    if (!science || state === before) return null;
    const moved = science.move(ranking(before, which), settings(before), from, to);
    return {
      state,
      scores: this.shown.scores.map((scores, at) => (at === which ? moved.after : scores)),
      previous: moved.before,
      why: explainMove(moved, from, to, state.tree.levels),
      delta: moved.delta,
    };
  }

  private commit(shown: Shown): void {
    this.held = null;
    this.history = record(this.history, shown.state);
    this.shown = shown;
    this.speak(shown);
    this.announce();
  }

  /** A change that is no move. `what` says what it was. */
  private readonly edit = (what: string, state: State): void => {
    if (state === this.history.present) return;
    this.history = record(this.history, state);
    this.replace(what, state);
  };

  private replace(what: string, state: State): void {
    this.held = null;
    const before = this.shown.scores[this.active] ?? null;
    try {
      const next = this.scored(state);
      if (this.active >= state.orders.length) this.active = 0;
      const after = next.scores[this.active];
      const comparable = before && after && before.ap.length === after.ap.length;
      const delta = before?.h_ap != null && after && after.h_ap !== null ? after.h_ap - before.h_ap : null;
      this.shown = {
        ...next,
        previous: comparable ? before : null,
        why: after ? explainChange(what, before, after, state.tree.levels) : null,
        delta,
      };
      this.speak(this.shown);
      this.announce();
    } catch (error) {
      this.failed = toFailure(error);
    }
  }

  /** For screen readers: the two scores first, then the reason. */
  private speak({ scores, previous, why }: Shown): void {
    const now = scores[this.active];
    if (!now || !why) return;
    const score = (name: string, is: number | null, was: number | null | undefined) =>
      `${name} ${format.score(is)}${
        is !== null && was != null
          ? `, ${
              Math.abs(is - was) < 5e-4
                ? "the same"
                : format
                    .difference(is - was)
                    .replace("+", "plus ")
                    .replace("−", "minus ")
            }`
          : ""
      }.`;
    this.spoken = [
      this.shows("h_ap") ? score("H-AP", now.h_ap, previous?.h_ap) : "",
      score("AP", now.ap.at(-1) ?? null, previous?.ap.at(-1)),
      why.plain,
    ].join(" ");
  }

  private announce(): void {
    this.dispatchEvent(new CustomEvent("change", { bubbles: true, composed: true }));
  }

  private arrange(goal: Goal, says: string): void {
    const { present } = this.history;
    if (!this.science) return;
    this.edit(
      says,
      reorder(present, this.active, this.science.order(ranking(present, this.active), settings(present), goal)),
    );
  }

  /** Begins to write the name of a node in the tree, or ends it. The focus goes to the field, and back to its button. */
  private readonly rename = (node: Node | null): boolean => {
    if (node === this.renaming) return false;
    const { level, first } = node ?? this.renaming ?? { level: 0, first: 0 };
    const hadFocus = this.shadowRoot?.activeElement?.matches(".name-field, [data-rename]");
    this.renaming = node;
    void this.updateComplete.then(() => {
      const field = this.renderRoot.querySelector<HTMLInputElement>(".name-field");
      if (field) {
        field.focus();
        field.select();
      } else if (hadFocus) this.renderRoot.querySelector<HTMLElement>(`[data-rename="${level}.${first}"]`)?.focus();
    });
    return true;
  };

  private step(direction: "undo" | "redo"): void {
    const next = direction === "undo" ? undo(this.history) : redo(this.history);
    if (next === this.history) return;
    this.history = next;
    this.replace(direction === "undo" ? "The last change is undone." : "The change is made again.", next.present);
  }

  // --- Moving --------------------------------------------------------------------------------------

  private hold(which: number, from: number, to: number): void {
    this.active = which;
    const shown = this.afterMove(which, from, to) ?? { ...this.shown, why: null, delta: null };
    this.held = { from, to, shown };
  }

  private drop(kept: boolean): void {
    const { held } = this;
    if (!held) return;
    if (kept && held.to !== held.from) this.commit(held.shown);
    else this.held = null;
  }

  private readonly shift = (which: number, place: number, by: number): void => {
    const item = orderOf(this.shown.state, which).items[place] ?? 0;
    this.refocus = { which, item, selector: `[data-by="${by}"]:not(:disabled)` };
    this.moveItem(which, place, place + by);
  };

  private readonly tie = (which: number, place: number): void =>
    this.edit("The tie has changed.", toggleTie(this.history.present, which, place));

  private row(
    event: Event,
  ): { which: number; place: number; item: number; row: HTMLElement; list: HTMLElement } | null {
    const row = (event.target as Element).closest<HTMLElement>(".item");
    const list = row?.closest<HTMLElement>(".items");
    if (!row || !list) return null;
    const number = (name: string) => Number(row.dataset[name] ?? 0);
    return { which: Number(list.dataset["which"] ?? 0), place: number("place"), item: number("item"), row, list };
  }

  private readonly pointerDown = (event: PointerEvent): void => {
    const found = this.row(event);
    const button = (event.target as Element).closest("button");
    if (!found || event.button !== 0 || (button && !button.matches(".grip"))) return;
    // A finger on the row scrolls the page; only the handle moves the row.
    if (event.pointerType === "touch" && !button) return;
    this.drop(true);
    const { which, place, item, row, list } = found;
    followPointer(event, list, row, () => {
      this.stop(which, item);
      this.hold(which, place, place);
      return { over: (to) => this.held?.to !== to && this.hold(which, place, to), end: (kept) => this.drop(kept) };
    });
  };

  private readonly keyDown = (event: KeyboardEvent): void => {
    const found = this.row(event);
    const target = event.target as Element;
    if (!found || event.altKey || event.ctrlKey || event.metaKey) return;
    const { which, place, item } = found;
    const last = orderOf(this.shown.state, which).items.length - 1;
    const to = { ArrowUp: place - 1, ArrowDown: place + 1, Home: 0, End: last }[event.key];
    const { held } = this;
    if (to !== undefined) {
      event.preventDefault();
      const bounded = Math.max(0, Math.min(last, to));
      if (held) {
        this.refocus = { which, item, selector: ".grip" };
        this.hold(which, held.from, bounded);
        this.speak(
          held.from === bounded
            ? { ...this.shown, why: { plain: "Back at its old rank.", numbers: "", ap: "" } }
            : (this.held?.shown ?? this.shown),
        );
      } else {
        const next = orderOf(this.shown.state, which).items[bounded] ?? 0;
        this.stop(which, next);
        this.refocus = {
          which,
          item: next,
          selector: target.matches("[data-by]")
            ? `[data-by="${target.getAttribute("data-by") ?? ""}"]:not(:disabled)`
            : ".grip",
        };
        this.requestUpdate();
      }
    } else if (held && (event.key === "Escape" || event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      this.refocus = { which, item, selector: ".grip" };
      this.drop(event.key !== "Escape");
      if (event.key === "Escape") this.spoken = "The item is back at its old rank.";
    } else if (target.matches(".grip") && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      this.refocus = { which, item, selector: ".grip" };
      this.hold(which, place, place);
      this.spoken = `Picked up at rank ${place + 1} of ${last + 1}.`;
    }
  };

  /** An item that is held by keyboard stays where it is when the focus goes elsewhere. */
  private readonly focusOut = (): void => {
    if (this.held && !this.refocus && !this.renderRoot.querySelector("[style*='--dragged']"))
      queueMicrotask(() => !this.refocus && this.drop(true));
  };

  private readonly point = (event: Event): void => {
    const found = this.row(event);
    if (!found) return;
    this.lit = found.item;
    if (event.type === "focusin") this.stop(found.which, found.item);
    if (!this.held) this.active = found.which;
  };

  private stop(which: number, item: number): void {
    this.stops = which === 0 ? [item, this.stops[1]] : [this.stops[0], item];
  }

  // --- Drawing -------------------------------------------------------------------------------------

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("state") && this.state !== "") {
      const parameters = new URLSearchParams(this.state.replace(/^\?/, ""));
      this.start(parseState((name) => parameters.get(name)));
    }
  }

  override render() {
    const { science } = this;
    const now = this.held?.shown ?? this.shown;
    const { state, scores } = now;
    const levels = state.tree.levels;
    const creatures = levels.every((name) => CREATURE_LEVELS.includes(name));
    const active = scores[this.active] ?? null;
    const place = this.lit === null ? -1 : orderOf(state, this.active).items.indexOf(this.lit);
    const litPlace = place < 0 ? null : place;
    const litTerm = litPlace === null ? undefined : active?.items[litPlace];
    const pair = state.orders.length > 1;
    return html`<div
      class="playground"
      data-lists=${state.orders.length}
      data-tree=${this.shows("tree")}
      data-side=${this.shows("scores") || this.shows("why")}
      data-curve=${this.shows("curve")}
    >
      <p class="visually-hidden" role="status" data-testid="spoken">${this.spoken}</p>
      <p class="visually-hidden" id="how-to-move">
        Press space or enter to pick the item up, the arrow keys, Home or End to move it, space or enter to put it down,
        Escape to put it back.
      </p>
      ${this.shows("presets") && science ? this.presets() : nothing}
      ${this.failed ? this.failure(this.failed) : nothing}
      <div class="stage">
        <div
          class="lists"
          @pointerdown=${this.pointerDown}
          @keydown=${this.keyDown}
          @focusout=${this.focusOut}
          @focusin=${this.point}
          @pointerover=${this.point}
          @pointerleave=${() => (this.lit = null)}
        >
          ${this.shows("query") ? this.query(state, creatures) : nothing}
          ${this.shows("tools") ? this.tools() : nothing}
          <div class="columns">
            ${state.orders.map(
              (_, which) =>
                html`<section
                  class="list"
                  data-active=${pair && which === this.active}
                  aria-label=${pair ? (which === 0 ? "First ranking" : "Second ranking") : "Ranking"}
                >
                  <header>
                    ${pair ? html`<h2>${which === 0 ? "First" : "Second"}</h2>` : nothing}
                    ${headline(levels, scores[which] ?? null, which === this.active ? now.previous : null, (part) => this.shows(part))}
                  </header>
                  <div class="scroller">
                    <akin-ranked-list
                      .state=${state}
                      .which=${which}
                      .scores=${scores[which] ?? null}
                      .grabbed=${this.held && which === this.active ? this.held.to : null}
                      .lit=${this.lit}
                      .stop=${this.stops[which] ?? 0}
                      .names=${creatures ? null : this.names}
                      .bars=${this.shows("bars")}
                      .quotients=${this.shows("h-rank")}
                      .tying=${this.tying}
                      .tie=${this.tie}
                      .shift=${this.shift}
                    ></akin-ranked-list>
                  </div>
                </section>`,
            )}
          </div>
        </div>
        <div class="side">
          ${this.shows("why") ? this.why(now) : nothing}
          ${this.shows("scores") ? scoreTable(levels, state.relevance === "weighted_ap", scores, now.previous, (part) => this.shows(part)) : nothing}
        </div>
        ${
          this.shows("tree")
            ? tree({
                state,
                lit: this.lit === null ? null : (state.items[this.lit] ?? null),
                creatures,
                editing: this.editingTree,
                editable: this.shows("controls") && this.shows("tree-editor"),
                renaming: this.renaming,
                rename: this.rename,
                toggle: () => (this.editingTree = !this.editingTree),
                edit: this.edit,
              })
            : nothing
        }
        ${
          active && (this.shows("equation") || this.shows("ap-equation"))
            ? html`<section class="formulas" aria-labelledby="formulas-title">
                <h2 id="formulas-title" class=${this.shows("equation") ? "" : "visually-hidden"}>
                  ${pair ? `The scores of the ${this.active === 0 ? "first" : "second"} ranking` : "How the scores come about"}
                </h2>
                ${this.shows("ap-equation") ? apEquation(active) : nothing}
                ${
                  this.shows("equation") && this.shows("h_ap")
                    ? html`${hApEquation(active, litPlace)}
                        <div class="term-detail">${termOf(active, litPlace, state.ties)}</div>`
                    : nothing
                }
              </section>`
            : nothing
        }
        ${
          active && this.shows("curve")
            ? html`<div class="curve-part">
                ${curve(active, levels, orderLevels(state, this.active), litTerm?.rank ?? null, (part) => this.shows(part))}
                ${saveChartButtons(() => this.renderRoot.querySelector<SVGSVGElement>(".curve svg"), "h-ap-curve")}
              </div>`
            : nothing
        }
      </div>
      ${this.shows("controls") ? controls({ state, kinds: this.shows("relevance-kind"), ties: this.shows("ties"), tying: this.tying, edit: this.edit, setTying: (on) => (this.tying = on) }) : nothing}
    </div>`;
  }

  private presets() {
    return html`<nav class="presets" aria-label="Examples">
      ${PRESETS.map(
        ({ name, title, note }) =>
          html`<button
            type="button"
            class="quiet"
            data-preset=${name}
            title=${note}
            @click=${() => this.openPreset(name)}
          >
            ${title}
          </button>`,
      )}
      <slot name="presets"></slot>
    </nav>`;
  }

  /** Opens an example by its name. */
  openPreset(name: string): void {
    const preset = PRESETS.find((preset) => preset.name === name);
    if (!preset || !this.science) return;
    this.names = [];
    this.queryName = "";
    const state = preset.make(this.science);
    this.stops = [orderOf(state, 0).items[0] ?? 0, orderOf(state, 1).items[0] ?? 0];
    this.active = 0;
    this.lit = null;
    this.history = record(this.history, state);
    this.shown = { ...this.scored(state), why: { plain: preset.note, numbers: "", ap: "" } };
    this.tying = hasTies(state);
    this.spoken = preset.note;
    this.announce();
  }

  private query(state: State, creatures: boolean) {
    const levels = state.tree.levels;
    const look = state.tree.classes[state.query];
    return html`<div class="query">
      ${creatures && look ? creature(look) : nothing}
      <p>
        <span class="eyebrow">The query</span>
        <span class="query-name">${creatures ? `a ${className(state.tree, state.query)}` : this.queryName}</span>
      </p>
      <ul class="legend" aria-label="How close an item is to the query">
        ${[...levels.keys()].reverse().map((index) => this.key(index + 1, levels))} ${this.key(0, levels)}
      </ul>
    </div>`;
  }

  private key(shared: number, levels: readonly string[]) {
    return html`<li class="kin" data-shared=${shared} ${vars({ "--near": nearness(shared, levels.length) })}>
      ${kinshipRing(shared, levels.length)} ${relation(shared, levels)}
    </li>`;
  }

  private tools() {
    const { past, future, present } = this.history;
    const pair = present.orders.length > 1;
    return html`<div
      class="tools"
      role="toolbar"
      aria-label=${pair ? `Change the ${this.active === 0 ? "first" : "second"} ranking` : "Change the ranking"}
    >
      <button
        type="button"
        class="quiet"
        data-do="undo"
        ?disabled=${past.length === 0}
        @click=${() => this.step("undo")}
      >
        Undo
      </button>
      <button
        type="button"
        class="quiet"
        data-do="redo"
        ?disabled=${future.length === 0}
        @click=${() => this.step("redo")}
      >
        Redo
      </button>
      <button
        type="button"
        class="quiet"
        data-do="shuffle"
        @click=${() => this.edit("The items stand in a random order.", shuffle(this.history.present, this.active, this.seed++))}
      >
        Shuffle
      </button>
      ${GOALS.map(({ goal, title, says }) => html`<button type="button" class="quiet" data-do=${goal} ?disabled=${!this.science} @click=${() => this.arrange(goal, says)}>${title}</button>`)}
    </div>`;
  }

  private why({ why, delta }: Shown) {
    return html`<div class="why" data-testid="why" data-delta=${delta ?? ""}>
      <h2 class="eyebrow">Why</h2>
      ${
        why
          ? html`<p class="why-plain">${why.plain}</p>
              ${this.shows("h_ap") ? html`<p class="why-numbers">${why.numbers}</p>` : nothing}
              <p class="why-ap">${why.ap}</p>`
          : html`<p class="why-plain">Move an item: drag it, or use its arrows.</p>
              <p class="why-ap">This place then says what the move did to the scores, and why.</p>`
      }
    </div>`;
  }

  private failure({ message, hint }: Failure) {
    return html`<div class="failed" role="alert">
      <p><b>The scores could not be computed:</b> ${inline(message)}. ${inline(sentence(hint))}</p>
      <button type="button" class="quiet" @click=${() => void this.load()}>Try again</button>
    </div>`;
  }

  protected override updated(): void {
    const { refocus } = this;
    if (!refocus) return;
    const list = this.lists()[refocus.which];
    void list?.updateComplete.then(() => {
      list.focusRow(refocus.item, refocus.selector);
      if (this.refocus === refocus) this.refocus = null;
    });
  }

  /** Complete when the rows are drawn, too: their elements draw after the scores, in the same frame. */
  protected override async getUpdateComplete(): Promise<boolean> {
    const complete = await super.getUpdateComplete();
    await Promise.all(this.lists().map((list) => list.updateComplete));
    return complete;
  }

  private lists(): AkinRankedList[] {
    return [...this.renderRoot.querySelectorAll("akin-ranked-list")];
  }

  /** The shared level of the item in a place, for those who check a task. */
  levelAt(which: number, place: number): number | null {
    const { state } = this.shown;
    const item = orderOf(state, which).items[place];
    return item === undefined ? null : itemLevel(state, item);
  }
}

const unscored = (state: State): Shown => ({ state, scores: [], previous: null, why: null, delta: null });

customElements.define("akin-playground", AkinPlayground);

declare global {
  interface HTMLElementTagNameMap {
    "akin-playground": AkinPlayground;
  }
}
