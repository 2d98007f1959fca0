import { html, nothing } from "lit";
import type { Collection } from "../collection.js";
import * as format from "../format.js";
import { nearness, relation } from "../kinship.js";
import type { Result } from "../messages/engine.js";
import type { SpriteSource } from "../sprites.js";
import { vars } from "../vars.js";
import { codeTicks } from "../elements/code-strip.js";
import { furtherMark } from "../elements/difference.js";
import { kinshipRing } from "../elements/kinship-ring.js";
import "../elements/thumb.js";

/** One result: its picture, rank and score, and its kinship to the query. Of a hash encoder, the bits that differ. */
export function resultCard(
  result: Result,
  rank: number,
  collection: Collection,
  sprites: SpriteSource,
  codes: { query: string; result: string } | null,
  /** By how many levels the other encoder's result at this rank is closer to the query. */
  further: number,
  /** Whether the encoder can show where it looks. */
  looks: boolean,
) {
  const { item, score, shared_level: shared } = result;
  const most = result.may_share ?? shared ?? 0;
  const { depth, levels } = collection;
  const above = collection.above(item);
  return html`<li
    class="result kin"
    data-item=${item}
    data-score=${score}
    data-shared=${shared ?? "unknown"}
    data-shared-level=${shared ?? "unknown"}
    data-worse=${further > 0}
    ${vars({ "--near": nearness(shared ?? 0, depth) })}
  >
    <button type="button" data-rove data-query-item=${item} tabindex="-1">
      <akin-thumb .picture=${{ item, sprites }}></akin-thumb>
      <span class="result-line"
        ><span class="rank">${rank}</span
        ><span class="number">${codes ? bitsText(codes.result, score) : format.score(score)}</span></span
      >
      ${codes ? codeTicks(codes.query, codes.result) : nothing}
      ${shared === null ? nothing : html`<span class="relation">${kinshipRing(shared, collection.reach, most)} ${relation(shared, levels, most)}</span>`}
      ${furtherMark(further)}
      <span class="name">${collection.name(item)}</span>
      ${above === "" ? nothing : html`<span class="path">${above}</span>`}
    </button>
    ${looks ? lookButton(item, rank, collection.name(item)) : nothing}
  </li>`;
}

/** Opens <akin-look>. */
const lookButton = (item: number, rank: number, name: string) =>
  html`<button
    type="button"
    class="quiet where"
    data-rove-beside
    data-look-item=${item}
    aria-label=${`Where it looks: result ${rank}, ${name}`}
    tabindex="-1"
  >
    Where it looks
  </button>`;

/** How many bits of a code differ; the score is minus that number. */
const bitsText = (code: string, score: number): string => `${-score} of ${format.count(code.length, "bit")}`;
