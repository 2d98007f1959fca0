// Kinship in words, colour and numbers. Level 0 is the root: nothing shared.

/** The word for a shared level: “same species”, …, “stranger”. */
export const relation = (shared: number, levels: readonly string[]): string =>
  shared === 0 ? "stranger" : `same ${levels[shared - 1] ?? `level ${shared}`}`;

/** Where a shared level lies between furthest kin (0) and nearest (1). */
export const nearness = (shared: number, depth: number): number => (depth <= 1 ? 1 : Math.max(0, (shared - 1) / (depth - 1)));

/** The finest level at which two rows of labels agree, 0 … L. */
export function sharedLevel(a: ArrayLike<number>, b: ArrayLike<number>): number {
  for (let level = Math.min(a.length, b.length); level > 0; level--) {
    if (a[level - 1] === b[level - 1]) return level;
  }
  return 0;
}
