import { html, nothing } from "lit";
import type { Collection } from "../collection.js";
import * as format from "../format.js";
import { nearness, relation } from "../kinship.js";
import type { Result } from "../protocol.js";
import type { SpriteSource } from "../sprites.js";
import { vars } from "../vars.js";
import { kinshipRing } from "../elements/kinship-ring.js";
import "../elements/thumb.js";

/** One result: its picture, rank and score, and its kinship to the query. */
export function resultCard(result: Result, rank: number, collection: Collection, sprites: SpriteSource) {
  const { item, score, shared_level: shared } = result;
  const { depth, levels } = collection;
  const path = collection.path(item);
  return html`<li
    class="result kin"
    data-item=${item}
    data-score=${score}
    data-shared=${shared ?? "unknown"}
    data-shared-level=${shared ?? "unknown"}
    ${vars({ "--near": nearness(shared ?? 0, depth) })}
  >
    <button type="button" data-rove data-query-item=${item} tabindex="-1">
      <akin-thumb .picture=${{ item, sprites }}></akin-thumb>
      <span class="result-line"
        ><span class="rank">${rank}</span><span class="number">${format.score(score)}</span></span
      >
      ${shared === null ? nothing : html`<span class="relation">${kinshipRing(shared, depth)} ${relation(shared, levels)}</span>`}
      <span class="name">${collection.name(item)}</span>
      ${depth > 1 ? html`<span class="path">${path.slice(0, -1).join(" › ")}</span>` : nothing}
    </button>
  </li>`;
}
