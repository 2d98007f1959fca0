// The one sentence that says why a score moved. Every number in it comes from akin-core.

import { difference, score } from "../format.js";
import { relation } from "../kinship.js";
import type { Move, Scores, SwapTerm } from "../messages/science.js";

export interface Explanation {
  /** What happened, in words. */
  plain: string;
  /** What that does to H-AP, in numbers. */
  numbers: string;
  /** What it does to AP. */
  ap: string;
}

/** A number inside of a formula: as short as it can be and still be checked by hand. */
export function short(value: number): string {
  const text = Math.abs(value) >= 0.095 || value === 0 ? value.toFixed(2) : value.toPrecision(2);
  const trimmed = Number(text) === 0 ? "0" : text.includes("e") ? text : text.replace(/\.?0+$/, "");
  return trimmed.replace("-", "−");
}

/** “one of the same species”, “a stranger”. */
const one = (level: number, levels: readonly string[]): string =>
  level === 0 ? "a stranger" : `one of the ${relation(level, levels)}`;

const many = (count: number, level: number, levels: readonly string[]): string =>
  count === 1 ? one(level, levels) : level === 0 ? `${count} strangers` : `${count} of the ${relation(level, levels)}`;

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** “a”, “a and b”, “a, b and c”. */
const list = (parts: readonly string[]): string =>
  parts.length < 2 ? (parts[0] ?? "") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1) ?? ""}`;

/** Explains a move of the item in place `from` to place `to`, both from 0. */
export function explainMove(move: Move, from: number, to: number, levels: readonly string[]): Explanation {
  const ap = explainAp(move.before, move.after, levels);
  const moved = move.ranking.levels[to] ?? 0;
  const [first] = move.swaps ?? [];
  if (move.swaps === null || !first) {
    return {
      plain: `${capital(one(moved, levels))} moved from rank ${from + 1} to rank ${to + 1}.`,
      numbers: explainTied(move),
      ap,
    };
  }
  if (move.swaps.length === 1) {
    return {
      plain: `${capital(one(first.up.level, levels))} moved above ${one(first.down.level, levels)}.`,
      numbers: explainSwap(first, move.after.relevance_sum),
      ap,
    };
  }
  const up = to < from;
  const passedLevel = (swap: SwapTerm) => (up ? swap.down : swap.up).level;
  const parts = ["stranger", ...levels].flatMap((_, level) => {
    const swaps = move.swaps?.filter((swap) => passedLevel(swap) === level) ?? [];
    const sum = swaps.reduce((sum, swap) => sum + swap.delta, 0);
    return swaps.length === 0 ? [] : [`${many(swaps.length, level, levels)} (${difference(sum)})`];
  });
  return {
    plain: `${capital(one(moved, levels))} moved ${up ? "up" : "down"} from rank ${from + 1} to rank ${to + 1}, past ${list(parts)}.`,
    numbers: `These ${move.swaps.length} swaps add up to ${difference(move.delta)} for H-AP.`,
    ap,
  };
}

/** The exact law of a swap of neighbours, with its numbers. */
function explainSwap({ rank, up, down, delta }: SwapTerm, relevanceSum: number): string {
  const [a, b, sa, sb] = [up.relevance, down.relevance, up.s, down.s].map(short);
  const law = `(${a ?? ""} − ${b ?? ""} + ${sa ?? ""} − ${sb ?? ""}) / (${rank} · ${rank + 1} · ${short(relevanceSum)}) = ${difference(delta)}`;
  if (up.level === down.level) return `Both are equally close to the query, so H-AP stays.`;
  return `At ranks ${rank} and ${rank + 1} that ${delta < 0 ? "takes from" : "adds to"} H-AP ${law}.`;
}

function explainTied({ before, after, delta }: Move): string {
  if (delta === null) return "No item has a relevance, so there is no H-AP.";
  return `With tied items no swap has a law of its own; H-AP goes from ${score(before.h_ap)} to ${score(after.h_ap)}, a change of ${difference(delta)}.`;
}

/** What a change does to the AP of the finest level. */
export function explainAp(before: Scores, after: Scores, levels: readonly string[]): string {
  const [was, is] = [before.ap.at(-1) ?? null, after.ap.at(-1) ?? null];
  const name = levels.at(-1) ?? "class";
  if (is === null) return `No item is of the query’s own ${name}, so there is no AP.`;
  if (was === null || Math.abs(is - was) < 1e-12)
    return `AP stays at ${score(is)}: it sees only the ranks of the query’s own ${name}, and these are the same.`;
  return `AP ${is > was ? "rises" : "falls"} by ${score(Math.abs(is - was))} to ${score(is)}, because items of the query’s own ${name} changed rank.`;
}

/** Explains a change that is no move: of the order as a whole, of the tree or of the settings. */
export function explainChange(
  what: string,
  before: Scores | null,
  after: Scores,
  levels: readonly string[],
): Explanation {
  const change =
    before?.h_ap != null && after.h_ap !== null ? `, a change of ${difference(after.h_ap - before.h_ap)}` : "";
  return {
    plain: what,
    numbers:
      after.h_ap === null ? "No item has a relevance, so there is no H-AP." : `H-AP is ${score(after.h_ap)}${change}.`,
    ap:
      before && before.ap.length === after.ap.length
        ? explainAp(before, after, levels).replace(
            ", because items of the query’s own",
            ", as items of the query’s own",
          )
        : "",
  };
}
