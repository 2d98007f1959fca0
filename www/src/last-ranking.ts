// The rankings of the reader's last query, one for each encoder, as the search view leaves them for the
// playground: shared levels and names, never a picture. They last as long as the browser's tab.

export interface LastRanking {
  encoder: string;
  /** The query's name. */
  query: string;
  /** The names of the levels, coarse to fine. */
  levels: string[];
  /** The shared level of each result, best first. */
  shared: number[];
  /** The name of each result's class. */
  names: string[];
  /** The number of ranked items, of which these are the first. */
  of: number;
}

const KEY = "akin-last-ranking";
/** The address gives every shared level one digit. */
export const MOST_LEVELS = 9;

const listeners = new Set<() => void>();

/** Calls the listener when the reader has a new ranking. */
export function onLastRankings(listener: () => void): void {
  listeners.add(listener);
}

/** The address at which the playground shows a ranking. */
export function playgroundAddress({ levels, shared }: LastRanking): string {
  const names = levels.map(encodeURIComponent).join(",");
  return `?${new URLSearchParams({ view: "playground", ranking: shared.join(""), levels: names }).toString()}`;
}

export function saveLastRankings(rankings: readonly LastRanking[]): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(rankings));
  } catch {
    // Storage may be forbidden or full. The playground then has no ranking of the reader's own.
  }
  for (const listener of listeners) listener();
}

export function readLastRankings(): LastRanking[] {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(stored) ? stored.filter(isRanking) : [];
  } catch {
    return [];
  }
}

function isRanking(value: unknown): value is LastRanking {
  if (typeof value !== "object" || value === null) return false;
  const { encoder, query, levels, shared, names, of } = value as Record<keyof LastRanking, unknown>;
  const texts = (list: unknown): list is string[] =>
    Array.isArray(list) && list.every((text) => typeof text === "string");
  if (typeof encoder !== "string" || typeof query !== "string" || typeof of !== "number") return false;
  if (!texts(levels) || levels.length < 1 || levels.length > MOST_LEVELS || !texts(names)) return false;
  return (
    Array.isArray(shared) && shared.every((level) => Number.isInteger(level) && level >= 0 && level <= levels.length)
  );
}
