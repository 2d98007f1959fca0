// The choice of a loss, as a text of the address and as the settings that the module reads:
// `happier;lambda=0.5`, or with HIER beside it `hyperbolic_cross_entropy+hier;0.weight=2`.

import type { JsonValue, Offer } from "../messages/training.js";

type Table = Offer["settings"];

/** The losses that can stand beside another one: HIER in its two forms. */
export const COMPANIONS = ["hier", "hier_text"];

/** A number or a switch among the settings of a loss. */
export interface Field {
  /** The keys from the outside in, with dots between them. */
  path: string;
  value: number | boolean;
}

export interface Choice {
  offer: Offer;
  companion: Offer | null;
  /** What differs from the defaults. */
  changes: ReadonlyMap<string, number | boolean>;
}

/** The numbers and switches of a loss, in its own order. */
export function fields(choice: Choice): Field[] {
  const found: Field[] = [];
  const visit = (value: JsonValue, path: string) => {
    if (typeof value === "number" || typeof value === "boolean") {
      found.push({ path, value: choice.changes.get(path) ?? value });
    } else if (typeof value === "object" && value !== null) {
      for (const [key, inner] of Object.entries(value)) visit(inner, path === "" ? key : `${path}.${key}`);
    }
  };
  visit(defaults(choice), "");
  return found;
}

/** The settings without changes. With a companion they are a sum of two losses. */
function defaults({ offer, companion }: Choice): Table {
  if (!companion) return offer.settings;
  const term = (loss: Table): Table => ({ weight: 1, loss });
  return { kind: "sum", terms: [term(offer.settings), term(companion.settings)] };
}

/** The settings that the module reads. */
export function settings(choice: Choice): Table {
  const visit = (value: JsonValue, path: string): JsonValue => {
    if (Array.isArray(value))
      return value.map((inner, place) => visit(inner, path === "" ? `${place}` : `${path}.${place}`));
    if (typeof value === "object" && value !== null) {
      const entries = Object.entries(value).map(([key, inner]) => [
        key,
        visit(inner, path === "" ? key : `${path}.${key}`),
      ]);
      return Object.fromEntries(entries) as Table;
    }
    return choice.changes.get(path) ?? value;
  };
  return visit(defaults(choice), "") as Table;
}

/** The choice with one value changed. A value at its default is not a change. */
export function change(choice: Choice, path: string, value: number | boolean): Choice {
  const changes = new Map(choice.changes);
  const initial = fields({ ...choice, changes: new Map() }).find((field) => field.path === path)?.value;
  if (value === initial) changes.delete(path);
  else changes.set(path, value);
  return { ...choice, changes };
}

export function printChoice({ offer, companion, changes }: Choice): string {
  const name = companion ? `${offer.name}+${companion.name}` : offer.name;
  return [name, ...[...changes].map(([path, value]) => `${path}=${value}`)].join(";");
}

/** Reads a choice. What is not offered, or not a setting of the loss, is left out; null if the loss is not offered. */
export function parseChoice(text: string, offers: readonly Offer[]): Choice | null {
  const [names = "", ...parts] = text.split(";");
  const [name, second] = names.split("+");
  const offer = offers.find((offer) => offer.name === name);
  if (!offer) return null;
  const companion = COMPANIONS.includes(second ?? "") ? (offers.find((other) => other.name === second) ?? null) : null;
  let choice: Choice = { offer, companion, changes: new Map() };
  const known = new Map(fields(choice).map(({ path, value }) => [path, value]));
  for (const part of parts) {
    const [path = "", value = ""] = part.split("=");
    const initial = known.get(path);
    if (typeof initial === "boolean" && /^(true|false)$/.test(value)) choice = change(choice, path, value === "true");
    if (typeof initial === "number" && /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(value))
      choice = change(choice, path, Number(value));
  }
  return choice;
}
