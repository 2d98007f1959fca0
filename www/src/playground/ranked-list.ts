// One ranked list: its items with rings, words and contribution bars, to be moved by pointer, by
// keyboard or with buttons.
//
// It is an element of its own, so that the scores are drawn before the rows. It has no shadow root, so that labels and
// focus are those of the playground around it.

import { html, LitElement, nothing, svg, type PropertyValues } from "lit";
import { property } from "lit/decorators.js";
import { guard } from "lit/directives/guard.js";
import { repeat } from "lit/directives/repeat.js";
import { kinshipRing } from "../elements/kinship-ring.js";
import { nearness, relation } from "../kinship.js";
import type { ItemTerm, Scores } from "../messages/science.js";
import { vars } from "../vars.js";
import { creature } from "./creature.js";
import { short } from "./explain.js";
import { depth, itemLevel, orderOf, type State } from "./state.js";
import { className } from "./taxonomy.js";

/** Lists with more items than this have low rows. */
const ROOMY = 24;

/** More rows than this do not glide to their places. */
const GLIDING = 60;

/** The six dots of a handle. */
const DOTS = svg`<svg class="dots" viewBox="0 0 10 16" aria-hidden="true">${[3, 8, 13].map((y) => svg`<circle cx="3" cy=${y} r="1.25" /><circle cx="7.500" cy=${y} r="1.250" />`)}</svg>`;

const arrow = (path: string) => svg`<svg class="arrow" viewBox="0 0 12 12" aria-hidden="true"><path d=${path} /></svg>`;
const UP = arrow("M2 8l4-4.500 4 4.500");
const DOWN = arrow("M2 4l4 4.500 4-4.500");

export class AkinRankedList extends LitElement {
  /** None before the playground has drawn it for the first time. */
  @property({ attribute: false }) accessor state: State | null = null;
  @property({ attribute: false }) accessor which = 0;
  @property({ attribute: false }) accessor scores: Scores | null = null;
  /** The place of the item that the reader has picked up. */
  @property({ attribute: false }) accessor grabbed: number | null = null;
  /** The item that the pointer or the focus is on. */
  @property({ attribute: false }) accessor lit: number | null = null;
  /** The item that Tab reaches. */
  @property({ attribute: false }) accessor stop = 0;
  /** A name for each item, where it is not that of a creature. */
  @property({ attribute: false }) accessor names: readonly string[] | null = null;
  @property({ attribute: false }) accessor bars = true;
  /** Whether a bar shows H-rank / rank of its item's relevance, or the relevance alone. */
  @property({ attribute: false }) accessor quotients = true;
  /** Whether the places between the items can be glued. */
  @property({ attribute: false }) accessor tying = false;
  @property({ attribute: false }) accessor tie: (which: number, place: number) => void = () => undefined;
  @property({ attribute: false }) accessor shift: (which: number, place: number, by: number) => void = () => undefined;

  /** A new object whenever something changes that every row shows. */
  private look = {};
  private most = 1;

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const before = changed.get("state");
    const { state } = this;
    const most = Math.max(1e-12, ...(this.scores?.items.map(({ relevance }) => relevance) ?? []));
    const same = (["tree", "query", "items"] as const).every((part) => before?.[part] === state?.[part]);
    const others = ["names", "bars", "quotients", "tying"] as const;
    if ((changed.has("state") && !same) || most !== this.most || others.some((name) => changed.has(name)))
      this.look = {};
    this.most = most;
  }

  protected override render() {
    const { state, which, scores, look } = this;
    if (!state) return nothing;
    const { items, tied } = orderOf(state, which);
    const last = items.length - 1;
    return html`<span class="visually-hidden" aria-hidden="true">
        <span id=${`grip-${which}`}>Move</span><span id=${`up-${which}`}>Up:</span
        ><span id=${`down-${which}`}>Down:</span>
      </span>
      <ol
        class="items"
        data-which=${which}
        data-dense=${items.length > ROOMY}
        aria-label=${state.orders.length > 1 ? (which === 0 ? "First ranking, best first" : "Second ranking, best first") : "Ranking, best first"}
      >
        ${repeat(
          items,
          (item) => item,
          (item, place) => {
            const term = scores?.items[place];
            const seen = [item === this.lit, item === this.stop, this.grabbed === place, place === last];
            // After a move most rows are as they were.
            return guard([look, place, tied[place], term?.relevance, term?.quotient, ...seen], () =>
              this.row(state, item, place, term),
            );
          },
        )}
      </ol>`;
  }

  protected override updated(changed: PropertyValues<this>): void {
    const before = changed.get("state");
    const { state, which } = this;
    if (before && before.items === state?.items) this.glide(orderOf(before, which).items, orderOf(state, which).items);
  }

  /** Lets the rows that have changed their places glide there. */
  private glide(before: readonly number[], after: readonly number[]): void {
    if (before === after || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const old = new Map(before.map((item, place) => [item, place]));
    const moved = after
      .map((item, place) => ({ place, by: (old.get(item) ?? place) - place }))
      .filter(({ by }) => by !== 0);
    if (moved.length > GLIDING) return;
    // In the next frame, because the height of a row needs the layout.
    requestAnimationFrame(() => {
      const rows = this.querySelectorAll<HTMLElement>(".item");
      const height = rows[0]?.offsetHeight ?? 0;
      for (const { place, by } of moved) {
        const row = rows[place];
        if (!row || row.style.getPropertyValue("--dragged")) continue;
        row.animate([{ transform: `translateY(${by * height}px)` }, { transform: "none" }], {
          duration: 160,
          easing: "ease-out",
        });
      }
    });
  }

  /** Gives the focus to a part of a row, else to its handle: at the end of the list an arrow is disabled. */
  focusRow(item: number, selector: string): void {
    const row = this.querySelector<HTMLElement>(`[data-item="${item}"]`);
    (row?.querySelector<HTMLElement>(selector) ?? row?.querySelector<HTMLElement>(".grip"))?.focus();
  }

  private row(state: State, item: number, place: number, term: ItemTerm | undefined) {
    const { which, names, grabbed } = this;
    const { items, tied } = orderOf(state, which);
    const levels = state.tree.levels;
    const shared = itemLevel(state, item);
    const of = state.items[item] ?? 0;
    const look = state.tree.classes[of];
    const name = names ? (names[item] ?? "") : className(state.tree, of);
    const tab = item === this.stop ? 0 : -1;
    // Labels that refer to others need not be written again when the item moves.
    const id = `item-${which}-${item}`;
    const label = (verb: string) => `${verb}-${which} ${id}-what ${id}-rank`;
    return html`<li
      class="item kin"
      data-item=${item}
      data-shared=${shared}
      data-place=${place}
      data-lit=${item === this.lit}
      data-grabbed=${grabbed === place}
      data-tied=${tied[place] === true}
      ${vars({ "--near": nearness(shared, depth(state)) })}
    >
      ${
        this.tying && place > 0
          ? html`<button
              type="button"
              class="glue"
              tabindex=${tab}
              aria-pressed=${tied[place] === true}
              aria-label=${`Tie rank ${place + 1} with rank ${place}`}
              title="Tie with the item above"
              @click=${() => this.tie(which, place)}
            ></button>`
          : nothing
      }
      <span class="rank" id=${`${id}-rank`}><span class="visually-hidden">rank </span>${place + 1}</span>
      <button
        type="button"
        class="grip"
        tabindex=${tab}
        aria-labelledby=${label("grip")}
        aria-pressed=${grabbed === place}
        aria-describedby="how-to-move"
      >
        ${DOTS}${names ? nothing : guard([look], () => (look ? creature(look) : nothing))}
      </button>
      <span class="kind" id=${`${id}-what`}>
        <span class="word"
          >${guard([shared, levels.length], () => kinshipRing(shared, levels.length))}<span
            >${relation(shared, levels)}</span
          ></span
        >
        <span class="name">${name}</span>
      </span>
      ${this.bars ? bar(term, this.most, this.quotients) : nothing}
      <span class="nudge">
        <button
          type="button"
          tabindex=${tab}
          data-by="-1"
          aria-labelledby=${label("up")}
          ?disabled=${place === 0}
          @click=${() => this.shift(which, place, -1)}
        >
          ${UP}
        </button>
        <button
          type="button"
          tabindex=${tab}
          data-by="1"
          aria-labelledby=${label("down")}
          ?disabled=${place === items.length - 1}
          @click=${() => this.shift(which, place, 1)}
        >
          ${DOWN}
        </button>
      </span>
    </li>`;
  }
}

/** The track is the item's relevance, which is the most that it can give; the bar is H-rank / rank, which it gives. */
function bar(term: Scores["items"][number] | undefined, most: number, quotients: boolean) {
  const { relevance = 0, quotient = 0, h_rank: hRank = 0, rank = 0 } = term ?? {};
  const text = relevance === 0 ? "0" : quotients ? `${short(hRank)} / ${rank} = ${short(quotient)}` : short(relevance);
  return html`<span class="share" data-quotient=${term?.quotient ?? ""} data-contribution=${term?.contribution ?? ""}>
    <span class="share-text number"
      ><span class="visually-hidden">${quotients && relevance > 0 ? "H-rank by rank: " : "Relevance: "}</span
      >${text}</span
    >
    <i
      class="share-bar"
      ${vars({ "--most": relevance / most, "--given": (quotients ? quotient : relevance) / most })}
    ></i>
  </span>`;
}

customElements.define("akin-ranked-list", AkinRankedList);

declare global {
  interface HTMLElementTagNameMap {
    "akin-ranked-list": AkinRankedList;
  }
}
