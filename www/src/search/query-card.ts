import { html, nothing } from "lit";
import { COMMON, printAddress, readAddress } from "../address.js";
import type { Collection } from "../collection.js";
import type { unlikeNote } from "../gallery/unlike-note.js";
import type { SpriteSource } from "../sprites.js";
import type { answerNote } from "./answer-note.js";
import { voteTable, type Votes } from "./vote-table.js";
import "./label-choice.js";
import "../elements/thumb.js";

/** The query: an item of the bundle, or the reader's own picture. */
export type Query =
  { kind: "item"; item: number } | { kind: "image"; name: string; file: Blob; url: string; labels: Uint32Array | null };

/** An identifier of the query: `item:7` or `image:NAME`. */
export const queryKey = (query: Query | null): string =>
  query === null ? "" : query.kind === "item" ? `item:${query.item}` : `image:${query.name}`;

/** The query: its picture, its labels or the votes for them, and its origin. `unlike` and `held`, how far they hold, stand before the votes. */
export function queryCard(
  query: Query,
  collection: Collection,
  sprites: SpriteSource,
  votes: readonly Votes[],
  unlike: ReturnType<typeof unlikeNote>,
  held: ReturnType<typeof answerNote>,
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
      ${query.kind === "item" ? itemText(query.item, collection) : pictureText(query, collection, unlike !== nothing)}
    </div>
    ${
      query.kind === "image"
        ? html`<div class="query-votes">
            ${unlike} ${held} ${votes.map((one) => voteTable(one, collection, votes.length > 1))}
            ${
              collection.depth > 0
                ? html`<akin-labels .collection=${collection} .picture=${query.file} @label=${setLabels}></akin-labels>`
                : nothing
            }
          </div>`
        : nothing
    }
  </section>`;
}

function itemText(item: number, collection: Collection) {
  const above = collection.above(item);
  return html`${above === "" ? nothing : html`<p class="path">${above}</p>`}
    <p class="soft">
      ${collection.isStoredQuery(item) ? "A stored query." : "From the gallery. It is left out of its own ranking."}
      ${hasMap(collection) ? html`<a href=${mapAddress(item)}>Show it on the map</a>` : nothing}
    </p>`;
}

const hasMap = ({ manifest }: Collection) => manifest.encoders.some(({ maps }) => (maps?.length ?? 0) > 0);

/** The address of the map with an item as the query, of the same bundle. */
function mapAddress(item: number): string {
  const { bundle, backend } = readAddress(COMMON, location.search);
  const params = new URLSearchParams(printAddress("map", COMMON, { bundle, backend, hide: [] }).search);
  params.set("q", String(item));
  return `?${params}`;
}

function pictureText({ name, labels }: Query & { kind: "image" }, collection: Collection, isUnlike: boolean) {
  return html`<p class="path file-name">${name}</p>
    <p class="soft">${labels ? labelText(labels, collection) : unknownText(collection, isUnlike)}</p>`;
}

const labelText = (labels: Uint32Array, collection: Collection) =>
  `Your labels: ${Array.from(labels, (id, index) => collection.className(index + 1, id)).join(" › ")}.`;

function unknownText({ depth }: Collection, isUnlike: boolean): string {
  if (depth === 0) return "The pictures of this gallery have no labels, so the results have no rings.";
  if (isUnlike) return "Its class is unknown, and nothing here is like it, so the results have no rings.";
  return "Its class is unknown, so the rings compare each result with the class that the nearest pictures vote for.";
}

/** Hides a picture that the browser cannot show, although the engine may read it. */
const hide = (event: Event) => ((event.target as HTMLElement).hidden = true);
const unhide = (event: Event) => ((event.target as HTMLElement).hidden = false);
