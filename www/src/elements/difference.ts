// Two rankings of the gallery by one query: where they differ in kinship.

import { html, nothing } from "lit";
import * as format from "../format.js";
import { relation } from "../kinship.js";
import type { Result } from "../messages/engine.js";

type Ranking = readonly Pick<Result, "shared_level">[];

/** The first rank at which the two rankings differ in kinship, in words. `names` are those of their encoders. */
export function differenceText(
  names: readonly [string, string],
  [first, second]: readonly [Ranking, Ranking],
  levels: readonly string[],
): string {
  const shared = (ranking: Ranking, place: number) => ranking[place]?.shared_level ?? 0;
  const at = first.findIndex((_, place) => shared(first, place) !== shared(second, place));
  if (at < 0) return `Both rankings have the same kinship at the first ${first.length} ranks.`;
  const word = (level: number) => (level === 0 ? "a stranger" : `one of the ${relation(level, levels)}`);
  return `At rank ${at + 1}, ${names[0]} has ${word(shared(first, at))}, and ${names[1]} has ${word(shared(second, at))}.`;
}

/** By how many levels a result is further from the query than the other ranking's result at its place. */
export const levelsFurther = (ranking: Ranking, other: Ranking, place: number): number =>
  Math.max(0, (other[place]?.shared_level ?? 0) - (ranking[place]?.shared_level ?? 0));

/** The mark of a result that is further from the query than the other ranking's at its rank. */
export const furtherMark = (levels: number) =>
  levels > 0 ? html`<span class="further">${format.count(levels, "level")} further</span>` : nothing;
