import { html, nothing } from "lit";
import type { Collection } from "../collection.js";
import type { Vote } from "../protocol.js";
import type { Sprites } from "../sprites.js";
import { voteTable } from "./vote-table.js";
import "./label-choice.js";
import "../elements/thumb.js";

/** The query: an item of the bundle, or the reader's own picture. */
export type Query =
  | { kind: "item"; item: number }
  | { kind: "image"; name: string; bytes: Uint8Array; url: string; labels: Uint32Array | null };

/** An identifier of the query: `item:7` or `image:NAME`. */
export const queryKey = (query: Query | null): string =>
  query === null ? "" : query.kind === "item" ? `item:${query.item}` : `image:${query.name}`;

/** The query: its picture, its labels or the votes for them, and its origin. */
export function queryCard(
  query: Query,
  collection: Collection,
  sprites: Sprites,
  votes: readonly { encoder: string; votes: readonly Vote[] }[],
  setLabels: (event: CustomEvent<Uint32Array | null>) => void,
) {
  return html`<section class="query" data-testid="query" data-query=${queryKey(query)} aria-labelledby="query-title">
    <div class="query-picture">
      ${
        query.kind === "item"
          ? html`<akin-thumb .picture=${{ item: query.item, sprites }}></akin-thumb>`
          : html`<img src=${query.url} alt="" @error=${hide} @load=${unhide} />`
      }
    </div>
    <div class="query-text">
      <p class="eyebrow">The query</p>
      <h3 id="query-title" tabindex="-1">${query.kind === "item" ? collection.name(query.item) : "Your picture"}</h3>
      ${query.kind === "item" ? itemText(query.item, collection) : pictureText(query, collection)}
    </div>
    ${
      query.kind === "image"
        ? html`<div class="query-votes">
            ${votes.map(({ encoder, votes: encoderVotes }) => voteTable(encoderVotes, collection, encoder, votes.length > 1))}
            <akin-labels .collection=${collection} .picture=${query.bytes} @label=${setLabels}></akin-labels>
          </div>`
        : nothing
    }
  </section>`;
}

function itemText(item: number, collection: Collection) {
  const path = collection.path(item);
  return html`${path.length > 1 ? html`<p class="path">${path.slice(0, -1).join(" › ")}</p>` : nothing}
    <p class="soft">
      ${collection.isStoredQuery(item) ? "A stored query." : "From the gallery. It is left out of its own ranking."}
    </p>`;
}

function pictureText(query: Query & { kind: "image" }, collection: Collection) {
  const { labels } = query;
  return html`<p class="path file-name">${query.name}</p>
    <p class="soft">
      ${
        labels
          ? `Your labels: ${Array.from(labels, (id, index) => collection.className(index + 1, id)).join(" › ")}.`
          : "Its class is unknown, so the rings compare each result with the class that the nearest pictures vote for."
      }
    </p>`;
}

/** Hides a picture that the browser cannot show, although the engine may read it. */
const hide = (event: Event) => ((event.target as HTMLElement).hidden = true);
const unhide = (event: Event) => ((event.target as HTMLElement).hidden = false);
