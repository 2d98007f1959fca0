// Kinship in words and numbers. At shared level 0, the root, nothing is shared.

/** The word for a shared level: “same species”, …, “stranger”. */
export const relation = (shared: number, levels: readonly string[]): string =>
  shared === 0 ? "stranger" : `same ${levels[shared - 1] ?? `level ${shared}`}`;

/** A shared level between 1 … L as a number between 0 (furthest kin) and 1 (nearest kin). */
export const nearness = (shared: number, depth: number): number =>
  depth <= 1 ? 1 : Math.max(0, (shared - 1) / (depth - 1));

/** The finest level at which two rows of labels agree, 0 … L. */
export function sharedLevel(a: ArrayLike<number>, b: ArrayLike<number>): number {
  for (let level = Math.min(a.length, b.length); level > 0; level--) {
    if (a[level - 1] === b[level - 1]) return level;
  }
  return 0;
}
