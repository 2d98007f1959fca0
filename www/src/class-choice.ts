// A class that a view is filtered by.

import type { Collection } from "./collection.js";

/** A class by its level, 1 … L, and its number at that level. An address writes it as `2.17`. */
export interface ClassChoice {
  readonly level: number;
  readonly id: number;
}

export const printClass = (choice: ClassChoice | null): string => (choice ? `${choice.level}.${choice.id}` : "");

/** The class of a text from an address; null if the collection has none such. */
export function parseClass(text: string, collection: Collection): ClassChoice | null {
  const [, level = 0, id = -1] = /^(\d{1,2})\.(\d{1,7})$/.exec(text)?.map(Number) ?? [];
  return id >= 0 && id < (collection.manifest.taxonomy.classes[level - 1]?.length ?? 0) ? { level, id } : null;
}

/** Whether an item is of the class; every item is where none is chosen. */
export const isInClass = (collection: Collection, choice: ClassChoice | null, item: number): boolean =>
  choice === null || collection.labels(item)[choice.level - 1] === choice.id;

/** The classes from the coarsest down to the chosen one. */
export function classPath(collection: Collection, choice: ClassChoice | null): number[] {
  const path: number[] = [];
  for (let { level, id } = choice ?? { level: 0, id: 0 }; level > 0; level--) {
    path.unshift(id);
    id = collection.manifest.taxonomy.parents[level - 1]?.[id] ?? 0;
  }
  return path;
}
