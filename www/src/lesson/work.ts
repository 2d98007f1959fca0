// What a task is checked by, and how.

import type { TemplateResult } from "lit";
import { ranking, settings, type State } from "../playground/state.js";
import type { Science } from "../science.js";
import type { Scores } from "../messages/science.js";

/** The state and core's figures, now and at the start of the part. */
export interface Work {
  readonly science: Science;
  readonly state: State;
  readonly scores: readonly Scores[];
  readonly start: { readonly state: State; readonly scores: readonly Scores[] };
}

export interface Verdict {
  readonly solved: boolean;
  /** Why it is solved, or why not yet. */
  readonly says: string;
}

export interface Part {
  readonly title: string;
  readonly text: TemplateResult;
  readonly task: TemplateResult;
  readonly hint: TemplateResult;
  /** What of the playground this part of the lesson does not need. */
  readonly hide: string;
  /** The state of the playground at the start, and the names of its items and query if they are not creatures. */
  readonly begin: () => { state: State; names?: readonly string[]; query?: string };
  readonly check: (work: Work) => Verdict;
  /** The place of the item that is lit at the start. */
  readonly lit?: number;
  /** Loads the elements of `after`. */
  readonly load?: () => Promise<unknown>;
  /** What follows the playground. */
  readonly after?: TemplateResult;
}

export const solved = (says: string): Verdict => ({ solved: true, says });
export const notYet = (says: string): Verdict => ({ solved: false, says });

export const near = (a: number | null | undefined, b: number): boolean => a != null && Math.abs(a - b) < 1e-9;

/** The AP of the finest level. */
export const fineAp = (scores: Scores | undefined): number => scores?.ap.at(-1) ?? 0;

/** The greatest gain of H-AP by one move. */
export function bestGain(science: Science, state: State): number {
  const [input, options] = [ranking(state, 0), settings(state)];
  let best = 0;
  for (let from = 0; from < input.levels.length; from++) {
    for (let to = 0; to < input.levels.length; to++) {
      if (from !== to) best = Math.max(best, science.move(input, options, from, to).delta ?? 0);
    }
  }
  return best;
}

/** Whether one item, taken out and put back elsewhere, makes the second order of the first. */
export function isOneMove(before: readonly number[], after: readonly number[]): boolean {
  const changed = (place: number) => before[place] !== after[place];
  const places = before.map((_, place) => place).filter(changed);
  const [first, last] = [places[0] ?? 0, places.at(-1) ?? 0];
  const [was, is] = [before.slice(first, last + 1), after.slice(first, last + 1)];
  const up = [...was.slice(-1), ...was.slice(0, -1)];
  const down = [...was.slice(1), ...was.slice(0, 1)];
  return is.join() === up.join() || is.join() === down.join();
}
