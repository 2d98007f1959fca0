// The state of a playground as the parameters of an address, and back. A value at its default is left
// out, and a bad value gets its default.

import { MOST_LEVELS } from "../last-ranking.js";
import type { Relevance, TiePolicy } from "../messages/science.js";
import type { Look } from "./creature.js";
import {
  equalWeights,
  fromLevels,
  matching,
  MAX_ALPHA,
  MAX_ITEMS,
  orderLevels,
  type Order,
  type State,
} from "./state.js";
import {
  givenName,
  LONGEST_NAME,
  MAX_CLASSES,
  nodeOf,
  renameNode,
  sharedLevel,
  taxonomy,
  usualLooks,
  usualNames,
  type Taxonomy,
} from "./taxonomy.js";

/** The parameters that hold a state. */
export const PARAMETERS = [
  "ranking",
  "second",
  "levels",
  "tree",
  "looks",
  "names",
  "query",
  "classes",
  "ties",
  "ties2",
  "relevance",
  "alpha",
  "weights",
  "policy",
  "count",
] as const;

export type Parameters = Partial<Record<(typeof PARAMETERS)[number], string>>;

const KINDS: readonly Relevance["kind"][] = ["plain", "hierarchical_ap", "weighted_ap"];
const POLICIES: readonly TiePolicy[] = ["stable", "strict", "optimistic", "pessimistic", "shared"];

/** The ranking of a new playground: HAPPIER, Fig. 8, first row. */
const FIRST = "23013";

// --- Writing -------------------------------------------------------------------------------------

const digits = (values: readonly number[]): string => values.map((value) => value.toString(36)).join("");

export function printState(state: State): Parameters {
  const { tree } = state;
  const levels = orderLevels(state, 0);
  const usual = usualNames(tree.levels.length);
  const classes = state.orders[0].items.map((item) => state.items[item] ?? 0);
  const [, second] = state.orders;
  const values: Record<keyof Parameters, string | false> = {
    ranking: digits(levels),
    second: second !== undefined && digits(orderLevels(state, 1)),
    levels:
      tree.levels.join() === usual.join()
        ? tree.levels.length !== 3 && String(tree.levels.length)
        : tree.levels.map(encodeURIComponent).join(),
    tree: digits(tree.between) !== digits(usualTree(tree.levels.length)) && (digits(tree.between) || "-"),
    looks: looksText(tree) !== looksText(taxonomy(tree.levels, tree.between)) && looksText(tree),
    names: namesText(tree) || false,
    query: state.query !== 0 && String(state.query),
    classes: classes.some((of, at) => of !== firstClass(tree, state.query, levels[at] ?? 0)) && digits(classes),
    ties: tiesText(state.orders[0]) || false,
    ties2: second !== undefined && (tiesText(second) || false),
    relevance: state.relevance !== "plain" && state.relevance,
    alpha: state.alpha !== 1 && String(state.alpha),
    weights: state.weights.some((weight) => weight !== 1) && state.weights.join(),
    policy: state.ties !== "stable" && state.ties,
    count: state.countQuery && "1",
  };
  if (values.ranking === FIRST && !values.second && !values.levels) values.ranking = false;
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== false));
}

/** One class beside the query's own at every level. */
const usualTree = (depth: number): number[] => Array.from({ length: depth }, (_, index) => depth - 1 - index);

/** The attributes of the levels, and four values for each class. */
const looksText = ({ attributes, classes }: Taxonomy): string =>
  `${digits(attributes)}-${classes.map(digits).join("")}`;

/** The names that a reader has given: level, first class and name of each node, “2.0.weevil”. */
const namesText = (tree: Taxonomy): string =>
  tree.levels
    .flatMap((_, index) =>
      tree.classes.flatMap((_, first) => {
        const node = nodeOf(tree, index + 1, first);
        const name = givenName(tree, node);
        return name && node.first === first ? [`${index + 1}.${first}.${encodeURIComponent(name)}`] : [];
      }),
    )
    .join();

/** Tied ranks as ranges: “2-4,7-8”. */
function tiesText({ tied }: Order): string {
  const ranges: string[] = [];
  for (let place = 1; place < tied.length; place++) {
    if (!tied[place]) continue;
    let last = place;
    while (tied[last + 1]) last++;
    ranges.push(`${place}-${last + 1}`);
    place = last;
  }
  return ranges.join();
}

// --- Reading -------------------------------------------------------------------------------------

export function parseState(read: (name: (typeof PARAMETERS)[number]) => string | null): State {
  const names = parseNames(read("levels"));
  const depth = names.length;
  const tree = withNames(parseTree(names, read("tree"), read("looks")), read("names"));
  const named = wholeNumber(read("query")) ?? 0;
  const query = named < tree.classes.length ? named : 0;
  const given = parseDigits(read("ranking") ?? "", depth);
  const levels = given.length > 0 ? given : parseDigits(depth === 3 ? FIRST : "", depth);
  const classes = parseDigits(read("classes") ?? "", tree.classes.length - 1);
  const items: number[] = [];
  for (const [place, level] of levels.slice(0, MAX_ITEMS).entries()) {
    const named = classes[place];
    const of =
      named !== undefined && sharedLevel(tree, query, named) === level ? named : firstClass(tree, query, level);
    if (of !== null) items.push(of);
  }
  const first = items.map((of) => sharedLevel(tree, query, of));
  const secondItems = matching(first, parseDigits(read("second") ?? "", depth));
  const order = (of: readonly number[], ties: string | null): Order => ({
    items: of,
    tied: parseTies(ties, of.length),
  });
  const identity = order(
    items.map((_, item) => item),
    read("ties"),
  );
  const base = fromLevels([], null, names);
  return {
    ...base,
    tree,
    query,
    items,
    orders: secondItems && secondItems.length > 0 ? [identity, order(secondItems, read("ties2"))] : [identity],
    relevance: KINDS.find((kind) => kind === read("relevance")) ?? base.relevance,
    alpha: numberWithin(read("alpha"), 0, MAX_ALPHA) ?? base.alpha,
    weights: parseWeights(read("weights"), depth),
    ties: POLICIES.find((policy) => policy === read("policy")) ?? base.ties,
    countQuery: read("count") === "1",
  };
}

/** The first class with a shared level, 0 … L, with the query's. */
const firstClass = (tree: Taxonomy, query: number, level: number): number | null => {
  const found = tree.classes.findIndex((_, index) => sharedLevel(tree, query, index) === level);
  return found < 0 ? null : found;
};

function parseNames(text: string | null): string[] {
  if (text === null || text === "") return usualNames(3);
  if (/^[1-4]$/.test(text)) return usualNames(Number(text));
  const names = text.split(",").map((name) => decode(name).trim().slice(0, LONGEST_NAME));
  return names.length <= MOST_LEVELS && names.every(Boolean) ? names : usualNames(3);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function parseTree(levels: readonly string[], text: string | null, looks: string | null): Taxonomy {
  const depth = levels.length;
  const between = text === "-" ? [] : parseDigits(text ?? "", depth - 1);
  const usable = text === "-" || (between.length > 0 && between.length < MAX_CLASSES);
  const tree = taxonomy(levels, usable ? between : usualTree(depth));
  const [attributesText, classesText] = looks?.split("-") ?? [];
  const attributes = parseDigits(attributesText ?? "", MOST_LEVELS);
  const values = parseDigits(classesText ?? "", 35);
  const increases = attributes.every((value, at) => at === 0 || value > (attributes[at - 1] ?? 0));
  if (attributes.length !== depth || !increases || values.length !== 4 * tree.classes.length) return tree;
  return {
    ...tree,
    attributes,
    classes: usualLooks(depth, tree.between).map((_, index): Look => look(values.slice(4 * index))),
  };
}

function withNames(tree: Taxonomy, text: string | null): Taxonomy {
  for (const entry of text?.split(",") ?? []) {
    const [, level, first, name] = /^([1-9])\.(\d{1,2})\.(.+)$/.exec(entry) ?? [];
    if (Number(level) > tree.levels.length || Number(first) >= tree.classes.length) continue;
    if (name) tree = renameNode(tree, nodeOf(tree, Number(level), Number(first)), decode(name));
  }
  return tree;
}

const look = ([plan = 0, shape = 0, marking = 0, ornament = 0]: readonly number[]): Look => [
  plan,
  shape,
  marking,
  ornament,
];

/** The digits of a text in base 36, none greater than `largest`; none at all if the text is anything else. */
function parseDigits(text: string, largest: number): number[] {
  const values = [...text].map((digit) => (/[0-9a-z]/.test(digit) ? parseInt(digit, 36) : Infinity));
  return values.every((value) => value <= largest) ? values : [];
}

function parseTies(text: string | null, count: number): boolean[] {
  const tied = Array.from({ length: count }, () => false);
  for (const range of text?.split(",") ?? []) {
    const [first, last] = range.split("-").map(wholeNumber);
    if (first == null || last == null || first < 1 || last > count) continue;
    tied.fill(true, first, last);
  }
  return tied;
}

function parseWeights(text: string | null, depth: number): number[] {
  const weights = text?.split(",").map((weight) => numberWithin(weight, 0, 100)) ?? [];
  const usable = weights.filter((weight) => weight !== null);
  return usable.length === depth && weights.length === depth && usable.some((weight) => weight > 0)
    ? usable
    : equalWeights(depth);
}

const wholeNumber = (text: string | null): number | null =>
  text !== null && /^\d{1,4}$/.test(text) ? Number(text) : null;

function numberWithin(text: string | null, least: number, most: number): number | null {
  const value = text === null || text.trim() === "" ? NaN : Number(text);
  return value >= least && value <= most ? value : null;
}
