// The numbers of a grid of cells, and what is said about them.

import type { Look } from "../messages/engine.js";

/** The query or the result. */
export type SideName = "query" | "item";

/** The cells of the other picture that a cell adds most to the score with, best first; none where no pair is known. */
export function partners({ pairs, query, item }: Look, side: SideName, cell: number, count: number): Pair[] {
  if (!pairs) return [];
  const [cells, others] = [query.rows * query.columns, item.rows * item.columns];
  const all =
    side === "query"
      ? pairs.slice(cell * others, (cell + 1) * others)
      : Array.from({ length: cells }, (_, other) => pairs[other * others + cell] ?? 0);
  return all
    .map((value, other) => ({ cell: other, value }))
    .filter(({ value }) => value > 0)
    .sort((a, b) => b.value - a.value)
    .slice(0, count);
}

export interface Pair {
  cell: number;
  value: number;
}

/** The smallest number of cells whose values add up to half of the sum; null where the sum is not above 0. */
export function cellsOfHalf(values: readonly number[]): number | null {
  const sum = values.reduce((sum, value) => sum + value, 0);
  if (sum <= 0) return null;
  let rest = sum / 2;
  const sorted = [...values].sort((a, b) => b - a);
  const last = sorted.findIndex((value) => (rest -= value) <= 0);
  return last < 0 ? null : last + 1;
}

export const largest = (values: readonly number[]): number =>
  values.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);

/** The position of the largest value. */
export const strongest = (values: readonly number[]): number =>
  values.reduce((best, value, cell) => (value > (values[best] ?? -Infinity) ? cell : best), 0);
