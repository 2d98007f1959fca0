/** What can be undone and redone. */
export interface History<Value> {
  readonly past: readonly Value[];
  readonly present: Value;
  readonly future: readonly Value[];
}

/** More steps than this are forgotten, oldest first. */
const LIMIT = 200;

export const begin = <Value>(present: Value): History<Value> => ({ past: [], present, future: [] });

export const record = <Value>({ past, present }: History<Value>, next: Value): History<Value> => ({
  past: [...past, present].slice(-LIMIT),
  present: next,
  future: [],
});

export function undo<Value>(history: History<Value>): History<Value> {
  const previous = history.past.at(-1);
  if (previous === undefined) return history;
  return { past: history.past.slice(0, -1), present: previous, future: [history.present, ...history.future] };
}

export function redo<Value>(history: History<Value>): History<Value> {
  const [next, ...future] = history.future;
  if (next === undefined) return history;
  return { past: [...history.past, history.present], present: next, future };
}
