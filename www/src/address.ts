// The state of the page that its address holds, so that a link shows what its sender saw.
//
// Each view has a table of its parameters. A parameter can be read from text and written as text. A value
// at its default is left out of the address, and a text that cannot be read gives the default.

import { failure } from "./failure.js";
import type { Backend } from "./protocol.js";

/** One parameter of an address. */
export interface Parameter<T> {
  readonly initial: T;
  /** The value of a text from an address, or `undefined` if it is not valid. */
  parse(text: string): T | undefined;
  print(value: T): string;
}

export type Table = Readonly<Record<string, Parameter<unknown>>>;
export type Values<T extends Table> = { [K in keyof T]: T[K] extends Parameter<infer V> ? V : never };

/** Addresses may be this long, in characters from the `?` on. Longer ones are cut by some programs that pass links on. */
export const LONGEST = 2000;

// --- Kinds of parameters -----------------------------------------------------------------------

export function text(initial: string): Parameter<string>;
export function text(initial: null): Parameter<string | null>;
export function text(initial: string | null): Parameter<string | null> {
  return { initial, parse: (text) => text, print: (value) => value ?? "" };
}

interface Range {
  min?: number;
  max?: number;
}

/** A number in the range. It is written in full precision. */
export function number(initial: number, { min = -Infinity, max = Infinity }: Range = {}): Parameter<number> {
  const parse = (text: string) => {
    const value = /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN;
    return value >= min && value <= max ? value : undefined;
  };
  return { initial, parse, print: String };
}

export function whole(initial: number, range?: Range): Parameter<number>;
export function whole(initial: null, range?: Range): Parameter<number | null>;
/** A whole number in the range, from 0 on unless `min` says otherwise. */
export function whole(initial: number | null, { min = 0, max = 999_999_999 }: Range = {}): Parameter<number | null> {
  const parse = (text: string) => {
    const value = /^-?\d{1,9}$/.test(text) ? Number(text) : NaN;
    return value >= min && value <= max ? value : undefined;
  };
  return { initial, parse, print: (value) => String(value ?? "") };
}

export function oneOf<const V extends string>(values: readonly V[], initial: V): Parameter<V>;
export function oneOf<const V extends string>(values: readonly V[], initial: null): Parameter<V | null>;
/** One of the words. */
export function oneOf<const V extends string>(values: readonly V[], initial: V | null): Parameter<V | null> {
  return { initial, parse: (text) => values.find((value) => value === text), print: (value) => value ?? "" };
}

/** A list. Its items, written with `item`, must not contain a comma. */
export function list<V>(item: Parameter<V>, initial: readonly V[]): Parameter<readonly V[]> {
  const parse = (text: string) => {
    const values = text === "" ? [] : text.split(",").map((part) => item.parse(part));
    return values.includes(undefined) ? undefined : (values as V[]);
  };
  return { initial, parse, print: (values) => values.map((value) => item.print(value)).join(",") };
}

/** The levels of a ranking, a digit each, best first: `23013`. */
export function digits(initial: readonly number[]): Parameter<readonly number[]> {
  return {
    initial,
    parse: (text) => (/^\d*$/.test(text) ? [...text].map(Number) : undefined),
    print: (values) => values.join(""),
  };
}

/** The parameters of every view. A link from one view to another carries `bundle` and `backend`. */
export const COMMON = {
  /** The folder of the bundle, relative to the page. */
  bundle: text("bundle/"),
  /** The only back end that may run, where the reader chose one. */
  backend: oneOf<Backend>(["cpu", "webgpu"], null),
  /** The parts that are not shown, so that a teacher can choose what a class sees. */
  hide: list(text(""), []),
} satisfies Table;

// --- Reading and writing -----------------------------------------------------------------------

const entries = (table: Table) => Object.entries<Parameter<unknown>>(table);

/** Reads the part of an address from its `?` on. */
export function readAddress<T extends Table>(table: T, search: string): Values<T> {
  const params = new URLSearchParams(search);
  const values = entries(table).map(([name, parameter]) => {
    const text = params.get(name);
    return [name, (text === null ? undefined : parameter.parse(text)) ?? parameter.initial];
  });
  return Object.fromEntries(values) as Values<T>;
}

/**
 * The part of an address from its `?` on. If it were longer than `LONGEST`, the longest values are left
 * out; then `complete` is false, and a link does not show everything.
 */
export function printAddress<T extends Table>(
  view: string | null,
  table: T,
  values: Values<T>,
): { search: string; complete: boolean } {
  const params = new URLSearchParams(view === null ? {} : { view });
  for (const [name, parameter] of entries(table)) {
    const printed = parameter.print(values[name]);
    if (printed !== parameter.print(parameter.initial)) params.set(name, printed);
  }
  let complete = true;
  // Commas are legal in this part of an address, and lists are easier to read with them.
  const print = () => params.toString().replaceAll("%2C", ",");
  while (print().length > LONGEST) {
    const [longest] = [...params].reduce((a, b) => (b[1].length > a[1].length ? b : a));
    params.delete(longest);
    complete = false;
  }
  const search = print();
  return { search: search && `?${search}`, complete };
}

/** The state of one view that its address holds. The frame of the page creates it and writes it. */
export class AddressState<T extends Table> {
  /** False if the state is too long for an address, so that a link shows only a part of it. */
  complete = true;
  private current: Values<T>;
  private readonly listeners = new Set<(values: Values<T>) => void>();

  constructor(
    readonly table: T,
    search: string,
    private readonly changed: () => void,
  ) {
    this.current = readAddress(table, search);
  }

  get values(): Readonly<Values<T>> {
    return this.current;
  }

  /** Changes some values. The address bar follows after a pause, without a new entry in the history. */
  set(values: Partial<Values<T>>): void {
    this.current = { ...this.current, ...values };
    this.changed();
  }

  /** Whether the part may be shown: `hide=controls,tree` hides two. */
  shows(part: string): boolean {
    return !(this.current["hide"] as readonly string[] | undefined)?.includes(part);
  }

  /** Calls the listener when a link or the browser's buttons have changed the address of an open view. */
  onRestore(listener: (values: Values<T>) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Reads another address. Only the frame of the page calls it. */
  restore(search: string): void {
    this.current = readAddress(this.table, search);
    for (const listener of this.listeners) listener(this.current);
  }

  /** As `print`, but with another bundle, in which the values of `ofBundle` mean nothing. */
  printWith(view: string | null, common: Partial<Values<T>>, ofBundle: readonly string[]): string {
    const isSame = common["bundle"] === this.current["bundle"];
    const forgotten = isSame ? [] : ofBundle.map((name) => [name, this.table[name]?.initial]);
    const values = { ...this.current, ...Object.fromEntries(forgotten), ...common } as Values<T>;
    return printAddress(view, this.table, values).search;
  }

  print(view: string | null): string {
    const { search, complete } = printAddress(view, this.table, this.current);
    this.complete = complete;
    return search;
  }
}

/** The full address of the bundle, which must be on the page's own origin. */
export function bundleAddress(bundle: string): string {
  let address: URL;
  try {
    address = new URL(bundle.endsWith("/") ? bundle : `${bundle}/`, document.baseURI);
  } catch {
    throw failure(
      "origin",
      `“${bundle}” is not a valid address`,
      "name a folder beside this page, such as ?bundle=bundle/",
    );
  }
  if (address.origin !== location.origin) {
    throw failure(
      "origin",
      `the bundle is at ${address.origin}, but this page loads from its own origin only`,
      "copy the bundle into a folder beside this page and name that folder, such as ?bundle=bundle/",
    );
  }
  address.search = "";
  address.hash = "";
  return address.href;
}
