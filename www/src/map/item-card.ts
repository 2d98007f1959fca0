// What the map says of the item or the class in focus: a card beside its point, and a sentence for screen readers.

import { html, nothing } from "lit";
import { kinshipRing } from "../elements/kinship-ring.js";
import * as format from "../format.js";
import type { Shared } from "../collection.js";
import { relation } from "../kinship.js";
import type { GallerySource, QueryScores } from "./gallery-source.js";
import { lineOf, meanOfClass, type ClassNode, type ClassTree } from "./tree.js";

interface Item {
  item: number;
  query: number | null;
  scores: QueryScores | null;
}

/** The level that the item and the query share, and the finest that they may share; null without a query, and for itself. */
function sharedWith({ collection }: GallerySource, { item, query }: Item): Shared | null {
  if (query === null || query === item) return null;
  return collection.shared(query, item);
}

/** `line` has the numbers of its learned ancestors, from 0. */
export function describeItem(source: GallerySource, shown: Item, line: readonly number[]): string {
  const { collection } = source;
  const score = shown.scores?.value(shown.item, "h_ap") ?? null;
  const kin = sharedWith(source, shown);
  return [
    collection.name(shown.item),
    ...collection.path(shown.item).slice(0, -1).reverse(),
    ...(kin === null ? [] : [relation(kin.shared, collection.levels, kin.most)]),
    ...(score === null ? [] : [`H-AP ${format.score(score)} as the query`]),
    ...(line.length === 0 ? [] : [`below proxy ${line.map((proxy) => proxy + 1).join(" and ")}`]),
  ].join(", ");
}

export function itemCard(source: GallerySource, shown: Item) {
  const { collection, sprites } = source;
  const { item, query, scores } = shown;
  const above = collection.above(item);
  const score = scores?.value(item, "h_ap") ?? null;
  const kin = sharedWith(source, shown);
  return html`<div class="card" aria-hidden="true">
    <akin-thumb .picture=${{ item, sprites }}></akin-thumb>
    <span>
      <strong>${collection.name(item)}</strong>
      ${above === "" ? nothing : html`<span class="soft">${above}</span>`}
      ${kin === null ? nothing : html`<span>${kinshipRing(kin.shared, collection.reach, kin.most)} ${relation(kin.shared, collection.levels, kin.most)}</span>`}
      ${item === query ? html`<span>the query</span>` : nothing}
      ${score === null ? nothing : html`<span class="number">H-AP ${format.score(score)}</span>`}
    </span>
  </div>`;
}

interface Class {
  node: ClassNode;
  tree: ClassTree;
  query: number | null;
  scores: QueryScores | null;
}

/** The most pictures on the card of a class. */
const SAMPLES = 4;

/** Pictures of a class from all over its items. */
function samplesOf({ items }: ClassNode): number[] {
  const step = Math.max(1, items.length / SAMPLES);
  return Array.from({ length: Math.min(SAMPLES, items.length) }, (_, at) => items[Math.floor(at * step)] ?? 0);
}

/** The shared level of a class and the query; null without a query. */
const classSharedWith = ({ tree, node, query }: Class): number | null =>
  query === null
    ? null
    : tree.collection.sharedWithClass(
        query,
        lineOf(node).map(({ id }) => id),
      ).shared;

export function describeClass(shown: Class): string {
  const { node, tree, scores } = shown;
  const score = meanOfClass(node, scores);
  const shared = classSharedWith(shown);
  return [
    ...tree.path(node).reverse(),
    format.count(node.items.length, "picture"),
    ...(shared === null ? [] : [relation(shared, tree.collection.levels)]),
    ...(score === null ? [] : [`mean H-AP ${format.score(score)}`]),
  ].join(", ");
}

export function classCard({ sprites, collection }: GallerySource, shown: Class) {
  const { node, tree, scores } = shown;
  const path = tree.path(node);
  const score = meanOfClass(node, scores);
  const shared = classSharedWith(shown);
  return html`<div class="card is-class" aria-hidden="true" data-class=${node.id}>
    <span>
      <strong>${path.at(-1)}</strong>
      ${path.length > 1 ? html`<span class="soft">${path.slice(0, -1).join(" › ")}</span>` : nothing}
      <span class="number">${format.count(node.items.length, "picture")}</span>
      ${shared === null ? nothing : html`<span>${kinshipRing(shared, tree.collection.reach)} ${relation(shared, collection.levels)}</span>`}
      ${score === null ? nothing : html`<span class="number">mean H-AP ${format.score(score)}</span>`}
    </span>
    <span class="samples">
      ${samplesOf(node).map((item) => html`<akin-thumb .picture=${{ item, sprites }}></akin-thumb>`)}
    </span>
  </div>`;
}
