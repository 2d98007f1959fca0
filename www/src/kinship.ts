// Kinship in words and numbers. At shared level 0, the root, nothing is shared.

/**
 * The word for a shared level: “same species”, …, “stranger”. Where labels are unknown, two items may share up to the
 * level `most`: “same family, perhaps same species”.
 */
export const relation = (shared: number, levels: readonly string[], most = shared): string =>
  most > shared
    ? `${relation(shared, levels)}, perhaps ${relation(most, levels)}`
    : shared === 0
      ? "stranger"
      : wordOf(levels[shared - 1] ?? `level ${shared}`);

/** The grades of a matrix of relevance are called by their value. */
const wordOf = (level: string): string => (level.startsWith("relevance ") ? level : `same ${level}`);

/** What the items have in common that count at a level: “the same species”, “relevance 0.5 or more”. */
export const atLevel = (level: string): string =>
  level.startsWith("relevance ") ? `${level} or more` : `the same ${level}`;

/** The largest number of levels of which each has a row of its own. */
const MOST_ROWS = 8;

/** The levels that get a row of their own, as their indices, finest first: all, or some of many, with the first and the last. */
export function levelRows(depth: number): number[] {
  const rows = Math.min(depth, MOST_ROWS);
  return Array.from({ length: rows }, (_, row) => depth - 1 - Math.round((row * (depth - 1)) / Math.max(1, rows - 1)));
}

/** A shared level between 1 … L as a number between 0 (furthest kin) and 1 (nearest kin). */
export const nearness = (shared: number, depth: number): number =>
  depth <= 1 ? 1 : Math.max(0, (shared - 1) / (depth - 1));

/** The finest level that two rows of known labels may share, if one of them is known only to a coarser level than `depth`. */
export function mayShare(a: ArrayLike<number>, b: ArrayLike<number>, depth: number): number {
  const shared = sharedLevel(a, b);
  return shared === Math.min(a.length, b.length) ? depth : shared;
}

/** The finest level at which two rows of labels agree, 0 … L. */
export function sharedLevel(a: ArrayLike<number>, b: ArrayLike<number>): number {
  for (let level = Math.min(a.length, b.length); level > 0; level--) {
    if (a[level - 1] === b[level - 1]) return level;
  }
  return 0;
}
