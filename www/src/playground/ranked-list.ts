// One ranked list: its items with rings, words and contribution bars, to be moved by pointer, by
// keyboard or with buttons.

import { html, nothing, svg } from "lit";
import { guard } from "lit/directives/guard.js";
import { repeat } from "lit/directives/repeat.js";
import { kinshipRing } from "../elements/kinship-ring.js";
import { nearness, relation } from "../kinship.js";
import type { Scores } from "../science.js";
import { vars } from "../vars.js";
import { creature } from "./creature.js";
import { short } from "./explain.js";
import { depth, itemLevel, orderOf, type State } from "./state.js";
import { className } from "./taxonomy.js";

export interface ListView {
  state: State;
  which: number;
  scores: Scores | null;
  previous: Scores | null;
  /** The place of the item that the reader has picked up. */
  grabbed: number | null;
  /** The item that the pointer or the focus is on. */
  lit: number | null;
  /** The item that Tab reaches. */
  stop: number;
  /** A name for each item, where it is not that of a creature. */
  names: readonly string[] | null;
  bars: boolean;
  /** Whether a bar shows H-rank / rank of its item's relevance, or the relevance alone. */
  quotients: boolean;
  /** Whether the places between the items can be glued. */
  tying: boolean;
  tie(place: number): void;
  shift(place: number, by: number): void;
}

/** Lists with more items than this have low rows. */
const ROOMY = 24;

/** The six dots of a handle. */
const DOTS = svg`<svg class="dots" viewBox="0 0 10 16" aria-hidden="true">${[3, 8, 13].map((y) => svg`<circle cx="3" cy=${y} r="1.25" /><circle cx="7.500" cy=${y} r="1.250" />`)}</svg>`;

const arrow = (path: string) => svg`<svg class="arrow" viewBox="0 0 12 12" aria-hidden="true"><path d=${path} /></svg>`;
const UP = arrow("M2 8l4-4.500 4 4.500");
const DOWN = arrow("M2 4l4 4.500 4-4.500");

export function rankedList(view: ListView) {
  const { state, which, scores } = view;
  const order = orderOf(state, which);
  const relevant = scores?.items.map(({ relevance }) => relevance) ?? [];
  const most = Math.max(1e-12, ...relevant);
  return html`<span class="visually-hidden" aria-hidden="true">
      <span id=${`grip-${which}`}>Move</span><span id=${`up-${which}`}>Up:</span
      ><span id=${`down-${which}`}>Down:</span>
    </span>
    <ol
      class="items"
      data-which=${which}
      data-dense=${order.items.length > ROOMY}
      aria-label=${state.orders.length > 1 ? (which === 0 ? "First ranking, best first" : "Second ranking, best first") : "Ranking, best first"}
    >
      ${repeat(
        order.items,
        (item) => item,
        (item, place) => {
          const term = scores?.items[place];
          const seen = [
            item,
            place,
            order.tied[place],
            order.items.length,
            item === view.lit,
            item === view.stop,
            view.grabbed === place,
          ];
          const drawn = [
            state.tree,
            state.query,
            term?.relevance,
            term?.quotient,
            most,
            view.names,
            view.bars,
            view.quotients,
            view.tying,
          ];
          // After a move most rows are as they were.
          return guard([...seen, ...drawn], () => row(view, item, place, most));
        },
      )}
    </ol>`;
}

function row(view: ListView, item: number, place: number, most: number) {
  const { state, scores } = view;
  const order = orderOf(state, view.which);
  const levels = state.tree.levels;
  const shared = itemLevel(state, item);
  const of = state.items[item] ?? 0;
  const look = state.tree.classes[of];
  const name = view.names ? (view.names[item] ?? "") : className(state.tree, of);
  const word = relation(shared, levels);
  const term = scores?.items[place];
  const tab = item === view.stop ? 0 : -1;
  // Labels that refer to others need not be written again when the item moves.
  const id = `item-${view.which}-${item}`;
  const label = (verb: string) => `${verb}-${view.which} ${id}-what ${id}-rank`;
  return html`<li
    class="item kin"
    data-item=${item}
    data-shared=${shared}
    data-place=${place}
    data-lit=${item === view.lit}
    data-grabbed=${view.grabbed === place}
    data-tied=${order.tied[place] === true}
    ${vars({ "--near": nearness(shared, depth(state)) })}
  >
    ${
      view.tying && place > 0
        ? html`<button
            type="button"
            class="glue"
            tabindex=${tab}
            aria-pressed=${order.tied[place] === true}
            aria-label=${`Tie rank ${place + 1} with rank ${place}`}
            title="Tie with the item above"
            @click=${() => view.tie(place)}
          ></button>`
        : nothing
    }
    <span class="rank" id=${`${id}-rank`}><span class="visually-hidden">rank </span>${place + 1}</span>
    <button
      type="button"
      class="grip"
      tabindex=${tab}
      aria-labelledby=${label("grip")}
      aria-pressed=${view.grabbed === place}
      aria-describedby="how-to-move"
    >
      ${DOTS}${view.names ? nothing : guard([look], () => (look ? creature(look) : nothing))}
    </button>
    <span class="kind" id=${`${id}-what`}>
      <span class="word"
        >${guard([shared, levels.length], () => kinshipRing(shared, levels.length))}<span>${word}</span></span
      >
      <span class="name">${name}</span>
    </span>
    ${view.bars ? bar(term, most, view.quotients) : nothing}
    <span class="nudge">
      <button
        type="button"
        tabindex=${tab}
        data-by="-1"
        aria-labelledby=${label("up")}
        ?disabled=${place === 0}
        @click=${() => view.shift(place, -1)}
      >
        ${UP}
      </button>
      <button
        type="button"
        tabindex=${tab}
        data-by="1"
        aria-labelledby=${label("down")}
        ?disabled=${place === order.items.length - 1}
        @click=${() => view.shift(place, 1)}
      >
        ${DOWN}
      </button>
    </span>
  </li>`;
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
