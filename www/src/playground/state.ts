// The state of a playground, and its edits. Nothing here computes a score: akin-core does that.

import type { RankingInput, Relevance, ScoreSettings, TiePolicy } from "../messages/science.js";
import {
  addClass,
  addLevel,
  nodeOf,
  removeLevel,
  removeNode,
  sharedLevel,
  taxonomy,
  usualNames,
  type Node,
  type Taxonomy,
} from "./taxonomy.js";

export const MAX_ITEMS = 200;
export const MAX_ALPHA = 8;

/** One order of the items. */
export interface Order {
  /** The items by rank, as indexes into `State.items`. */
  readonly items: readonly number[];
  /** For each place, whether its item is tied with the one above it. */
  readonly tied: readonly boolean[];
}

export interface State {
  readonly tree: Taxonomy;
  /** The query's class. */
  readonly query: number;
  /** The class of each item. */
  readonly items: readonly number[];
  /** One ranking, or two of the same items. */
  readonly orders: readonly [Order] | readonly [Order, Order];
  readonly relevance: Relevance["kind"];
  /** α of the relevances that have one. */
  readonly alpha: number;
  /** The weights of Σ wAP, coarse to fine. */
  readonly weights: readonly number[];
  readonly ties: TiePolicy;
  readonly countQuery: boolean;
}

// --- What core is asked with ---------------------------------------------------------------------

export const depth = (state: State): number => state.tree.levels.length;

/** The shared level of an item and the query. */
export const itemLevel = (state: State, item: number): number =>
  sharedLevel(state.tree, state.query, state.items[item] ?? 0);

export const orderOf = (state: State, which: number): Order => state.orders[which] ?? state.orders[0];

/** The shared level of every item of an order, best first. */
export const orderLevels = (state: State, which: number): number[] =>
  orderOf(state, which).items.map((item) => itemLevel(state, item));

/** An order as core reads it. */
export function ranking(state: State, which: number): RankingInput {
  const { tied } = orderOf(state, which);
  const input: RankingInput = { depth: depth(state), levels: orderLevels(state, which) };
  if (!tied.some(Boolean)) return input;
  let group = 0;
  return { ...input, ties: tied.map((withAbove, place) => (place > 0 && !withAbove ? ++group : group)) };
}

export function settings({ relevance, alpha, weights, ties, countQuery }: State): ScoreSettings {
  return {
    relevance: relevance === "weighted_ap" ? { kind: relevance, weights: [...weights] } : { kind: relevance, alpha },
    ties,
    count_query: countQuery,
  };
}

export const hasTies = (state: State): boolean => state.orders.some(({ tied }) => tied.some(Boolean));

// --- Making one ----------------------------------------------------------------------------------

const untied = (items: readonly number[]): Order => ({ items, tied: items.map(() => false) });

/** The same weight for every level, which is the mean of their APs. */
export const equalWeights = (levels: number): number[] => Array.from({ length: levels }, () => 1);

/**
 * The state of one or two rankings that are given as shared levels. The tree has, beside the query's
 * class, one class at every other level. The second ranking must have the same items as the first.
 */
export function fromLevels(
  first: readonly number[],
  second: readonly number[] | null = null,
  names: readonly string[] | number = 3,
): State {
  const levels = typeof names === "number" ? usualNames(names) : names;
  const tree = taxonomy(
    levels,
    levels.map((_, index) => levels.length - 1 - index),
  );
  const items = first.map((level) => levels.length - level);
  const identity = untied(items.map((_, item) => item));
  const other = second && matching(first, second);
  return {
    tree,
    query: 0,
    items,
    orders: other ? [identity, untied(other)] : [identity],
    relevance: "plain",
    alpha: 1,
    weights: equalWeights(levels.length),
    ties: "stable",
    countQuery: false,
  };
}

/** The items of the first list, in an order that has the levels of the second. Null if they are not the same items. */
export function matching(first: readonly number[], second: readonly number[]): number[] | null {
  const byLevel = new Map<number, number[]>();
  first.forEach((level, item) => byLevel.set(level, [...(byLevel.get(level) ?? []), item]));
  const items = second.map((level) => byLevel.get(level)?.shift());
  return first.length === second.length && items.every((item) => item !== undefined) ? items : null;
}

// --- Edits of the order --------------------------------------------------------------------------

function withOrder(state: State, which: number, order: Order): State {
  const [first, second] = state.orders;
  if (!second) return { ...state, orders: [order] };
  return { ...state, orders: which === 0 ? [order, second] : [first, order] };
}

/** Moves the item in place `from` to place `to`. It joins a tie when it lands inside one, and is otherwise not tied. */
export function move(state: State, which: number, from: number, to: number): State {
  const { items, tied } = orderOf(state, which);
  const item = items[from];
  if (item === undefined || from === to || to < 0 || to >= items.length) return state;
  const restTied = tied.toSpliced(from, 1);
  // Without its first item, the rest of a tie begins with the next one.
  if (!tied[from] && from < restTied.length) restTied[from] = false;
  const inside = restTied[to] === true;
  return withOrder(state, which, {
    items: items.toSpliced(from, 1).toSpliced(to, 0, item),
    tied: restTied.toSpliced(to, 0, inside),
  });
}

/** Ties the item in a place with the one above it, or parts them. */
export function toggleTie(state: State, which: number, place: number): State {
  const order = orderOf(state, which);
  if (place < 1 || place >= order.items.length) return state;
  return withOrder(state, which, { ...order, tied: order.tied.with(place, !order.tied[place]) });
}

export function removeTies(state: State): State {
  return state.orders.reduce<State>((changed, order, which) => withOrder(changed, which, untied(order.items)), state);
}

/** Puts the items in the order of the given places. Ties are removed. */
export function reorder(state: State, which: number, places: readonly number[]): State {
  const { items } = orderOf(state, which);
  return withOrder(state, which, untied(places.map((place) => items[place] ?? 0)));
}

/** A random order that is always the same for the same seed. */
export function shuffle(state: State, which: number, seed: number): State {
  const random = mulberry32(seed);
  const places = orderOf(state, which).items.map((_, place) => place);
  for (let at = places.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [places[at], places[other]] = [places[other] ?? 0, places[at] ?? 0];
  }
  return reorder(state, which, places);
}

/** The generator “mulberry32” of numbers in [0, 1), which has 32 bits of state. */
function mulberry32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

// --- Edits of the tree ---------------------------------------------------------------------------

const mapClasses = (state: State, map: (index: number) => number): Pick<State, "items" | "query"> => ({
  items: state.items.map(map),
  query: map(state.query),
});

/** Adds an item of a class at the end of every ranking. */
export function addItem(state: State, classIndex: number): State {
  const item = state.items.length;
  if (item >= MAX_ITEMS) return state;
  const add = ({ items, tied }: Order): Order => ({ items: [...items, item], tied: [...tied, false] });
  const [first, second] = state.orders;
  return { ...state, items: [...state.items, classIndex], orders: second ? [add(first), add(second)] : [add(first)] };
}

/** Removes the item of a class that has the last rank in the first ranking. */
export function removeItem(state: State, classIndex: number): State {
  const item = state.orders[0].items.findLast((item) => state.items[item] === classIndex);
  return item === undefined ? state : keepItems(state, (other) => other !== item);
}

function keepItems(state: State, keep: (item: number) => boolean): State {
  const left = state.items.map((_, item) => item).filter(keep);
  const place = new Map(left.map((item, index) => [item, index]));
  const cut = ({ items, tied }: Order): Order => {
    const kept = items
      .map((item, at) => ({ item: place.get(item), tied: tied[at] ?? false }))
      .filter(({ item }) => item !== undefined);
    return { items: kept.map(({ item }) => item ?? 0), tied: kept.map(({ tied }, at) => at > 0 && tied) };
  };
  const [first, second] = state.orders;
  return {
    ...state,
    items: left.map((item) => state.items[item] ?? 0),
    orders: second ? [cut(first), cut(second)] : [cut(first)],
  };
}

/** Makes a class the query's. */
export const setQuery = (state: State, classIndex: number): State => ({ ...state, query: classIndex });

/** Adds a class with one item below a node. */
export function growNode(state: State, node: Node): State {
  const at = node.last + 1;
  const shifted = {
    ...state,
    tree: addClass(state.tree, node),
    ...mapClasses(state, (index) => (index >= at ? index + 1 : index)),
  };
  return addItem(shifted, at);
}

/** Removes the classes of a node with their items. A node with the query's class stays. */
export function pruneNode(state: State, node: Node): State {
  const inside = (index: number) => index >= node.first && index <= node.last;
  if (inside(state.query)) return state;
  const kept = keepItems(state, (item) => !inside(state.items[item] ?? 0));
  const width = node.last - node.first + 1;
  return {
    ...kept,
    tree: removeNode(state.tree, node),
    ...mapClasses(kept, (index) => (index > node.last ? index - width : index)),
  };
}

/** Removes a level, 1 … L. The last level stays. */
export function dropLevel(state: State, level: number): State {
  if (depth(state) <= 1) return state;
  const { tree, moved } = removeLevel(state.tree, level);
  return {
    ...state,
    tree,
    weights: state.weights.toSpliced(level - 1, 1),
    ...mapClasses(state, (index) => moved[index] ?? 0),
  };
}

/** Adds a finest level. The items of every class are shared out between its two new classes. */
export function splitLevel(state: State): State {
  const seen = new Map<number, number>();
  const items = state.items.map((of) => {
    const count = seen.get(of) ?? 0;
    seen.set(of, count + 1);
    return 2 * of + (count % 2);
  });
  return { ...state, tree: addLevel(state.tree), items, query: 2 * state.query, weights: [...state.weights, 1] };
}

/** The path of the query's class: its node at every level, coarse to fine. */
export const queryPath = (state: State): Node[] =>
  state.tree.levels.map((_, index) => nodeOf(state.tree, index + 1, state.query));
