// What core says of a state: the exact scores of the order, and each loss with its gradient.

import type { Science } from "../science.js";
import type { QueryLoss, Scores } from "../messages/science.js";
import { DEPTH, LOSSES, lossSetting, SCORING, type LossName } from "./losses.js";
import type { State } from "./state.js";

export interface ShownLoss extends QueryLoss {
  readonly name: LossName;
  /** −∂L/∂s of each item: up is above 0. */
  readonly push: readonly number[];
  /** 1 − AP, or 1 − H-AP, of the same order; null without positives. */
  readonly exact: number | null;
}

export interface Computed {
  /** The items by decreasing score; equal scores in the order of the items. */
  readonly order: readonly number[];
  /** The rank of each item, from 1. Equal scores have the same. */
  readonly ranks: readonly number[];
  readonly scores: Scores;
  readonly losses: readonly ShownLoss[];
}

export function compute(science: Science, state: State): Computed {
  const { order, ranks, scores } = rank(science, state);
  return { order, ranks, scores, losses: state.losses.map((name) => lossOf(science, state, name, scores)) };
}

function rank(science: Science, { scores, levels }: State) {
  const order = scores.map((_, item) => item).sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
  const ranks: number[] = [];
  const ties: number[] = [];
  for (const [place, item] of order.entries()) {
    const above = order[place - 1];
    const tied = above !== undefined && scores[above] === scores[item];
    ranks[item] = tied ? (ranks[above] ?? 0) : place + 1;
    ties.push(ranks[item] ?? 0);
  }
  const ranking = { depth: DEPTH, levels: order.map((item) => levels[item] ?? 0), ties };
  return { order, ranks, scores: science.score(ranking, SCORING) };
}

function lossOf(science: Science, state: State, name: LossName, scores: Scores): ShownLoss {
  const items = { depth: DEPTH, scores: [...state.scores], levels: [...state.levels] };
  const loss = science.queryLoss(items, lossSetting(name, state));
  const metric = LOSSES[name].metric === "AP" ? scores.ap[DEPTH - 1] : scores.h_ap;
  const push = loss.gradient.map((slope) => -slope);
  return { ...loss, name, push, exact: metric === null || metric === undefined ? null : 1 - metric };
}

/** The scores after one training step that follows a loss. Scores are cosines: they stay within −1 and 1. */
export function trained(science: Science, state: State): { scores: number[]; largest: number } {
  const items = { depth: DEPTH, scores: [...state.scores], levels: [...state.levels] };
  const { gradient } = science.queryLoss(items, lossSetting(state.follow, state));
  const moves = gradient.map((slope) => -slope * state.rate);
  const scores = state.scores.map((score, item) => Math.max(-1, Math.min(1, score + (moves[item] ?? 0))));
  return { scores, largest: Math.max(0, ...moves.map(Math.abs)) };
}

/** The items whose score is that of another item, in the order of their ranks. */
export const tiedItems = ({ ranks, order }: Computed): number[] =>
  order.filter((item) => ranks.filter((rank) => rank === ranks[item]).length > 1);

/** A push in words: “up by 0.59”, “down by 1.10”, “nowhere”. */
export function pushText(push: number): string {
  const text = Math.abs(push).toFixed(2);
  return text === "0.00" ? "nowhere" : `${push > 0 ? "up" : "down"} by ${text}`;
}

/** A push as a figure: +0.59, −1.10, 0. */
export function pushFigure(push: number): string {
  const text = Math.abs(push).toFixed(2);
  return text === "0.00" ? "0" : `${push > 0 ? "+" : "−"}${text}`;
}
