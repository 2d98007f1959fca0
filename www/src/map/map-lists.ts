// Below the map: the items nearest to the query, and the chosen items.

import { html, nothing } from "lit";
import { kinshipRing } from "../elements/kinship-ring.js";
import * as format from "../format.js";
import { relation } from "../kinship.js";
import type { Result } from "../messages/engine.js";
import type { GallerySource } from "./gallery-source.js";
import { chosenItems, type Choice, type ClassTree } from "./tree.js";

/** The number of the query's nearest items that are linked and listed. */
export const NEAREST = 12;

export interface Nearest {
  query: number;
  encoder: string;
  results: readonly Result[];
  isRanking: boolean;
  choice: Choice | null;
  /** Whether only chosen items are listed. */
  onlyChosen: boolean;
  /** What the map shows of them: lines to items, or a circle around the query's class. */
  onMap: "lines" | "circle" | "nothing";
  /** The address of the search with the query; null in a page of somebody else. */
  search: string | null;
}

export interface ListActions {
  query: (item: number | null) => void;
  focus: (item: number) => void;
}

const nameOf = (choice: Choice): string => (choice.kind === "class" ? choice.node.name : "inside the lasso");

export function nearestList(
  { collection, sprites }: GallerySource,
  { query, encoder, results, isRanking, choice, onlyChosen, onMap, search }: Nearest,
  actions: ListActions & { onlyChosen: (on: boolean) => void },
) {
  const members = onlyChosen && choice ? new Set(chosenItems(choice)) : null;
  const listed = results
    .map((result, at) => ({ ...result, rank: at + 1 }))
    .filter(({ item }) => !members || members.has(item));
  return html`<section class="list" aria-labelledby="nearest-title">
    <header>
      <h2 id="nearest-title">Nearest to this ${collection.name(query)}</h2>
      <p class="soft">
        ranked by ${encoder}.
        ${
          onMap === "lines"
            ? `Lines on the map lead to the first ${NEAREST}.${collection.isStoredQuery(query) ? " It is no item of the gallery: the map shows it amid its three nearest." : ""}`
            : onMap === "circle"
              ? "The map has a circle around its class."
              : nothing
        }
      </p>
      ${
        choice
          ? html`<label class="check"
              ><input
                type="checkbox"
                data-testid="only-chosen"
                .checked=${onlyChosen}
                @change=${(event: Event) => actions.onlyChosen((event.target as HTMLInputElement).checked)}
              />
              only ${nameOf(choice)}</label
            >`
          : nothing
      }
      ${search === null ? nothing : html`<a href=${search}>Search with it</a>`}
      <button type="button" class="quiet" @click=${() => actions.query(null)}>Clear the query</button>
    </header>
    <ul class="tiles" data-testid="nearest" aria-busy=${isRanking}>
      <li class="is-query">
        <akin-thumb .picture=${{ item: query, sprites }}></akin-thumb><span class="tile-line">the query</span>
      </li>
      ${listed.slice(0, NEAREST).map(
        ({ item, rank, shared_level, may_share }) =>
          html`<li data-item=${item} data-shared-level=${shared_level ?? "unknown"}>
            <button type="button" @click=${() => actions.query(item)} @focus=${() => actions.focus(item)}>
              <akin-thumb .picture=${{ item, sprites }}></akin-thumb>
              <span class="tile-line"
                ><span class="number">${rank}</span
                ><span class="visually-hidden">. ${collection.name(item)},</span>
                ${kinshipRing(shared_level ?? 0, collection.reach, may_share ?? 0)}
                ${relation(shared_level ?? 0, collection.levels, may_share ?? 0)}</span
              >
            </button>
          </li>`,
      )}
    </ul>
  </section>`;
}

/** The first `shown` of the chosen items. */
export function chosenGrid(
  { collection, sprites }: GallerySource,
  tree: ClassTree,
  choice: Choice,
  shown: number,
  actions: ListActions & { showAll: () => void; showMore: () => void },
) {
  const items = chosenItems(choice);
  const title = choice.kind === "class" ? tree.path(choice.node).join(" › ") : "Inside the lasso";
  return html`<section class="list" aria-labelledby="chosen-title" data-testid="chosen" data-count=${items.length}>
    <header>
      <h2 id="chosen-title">${title}</h2>
      <p class="soft">${format.count(items.length, "item")}</p>
      <button type="button" class="quiet" data-testid="clear-choice" @click=${() => actions.showAll()}>Show all</button>
    </header>
    <ul class="tiles small">
      ${items.slice(0, shown).map(
        (item) =>
          html`<li data-item=${item}>
            <button
              type="button"
              aria-label=${`Make this ${collection.name(item)} the query`}
              @click=${() => actions.query(item)}
              @focus=${() => actions.focus(item)}
              @pointerenter=${() => actions.focus(item)}
            >
              <akin-thumb .picture=${{ item, sprites }}></akin-thumb>
            </button>
          </li>`,
      )}
    </ul>
    ${
      items.length > shown
        ? html`<button type="button" class="quiet" @click=${() => actions.showMore()}>Show more</button>`
        : nothing
    }
  </section>`;
}
