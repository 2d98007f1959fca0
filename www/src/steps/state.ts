// What the reader has set: the part of the page that the address holds.

import { digits, list, number, oneOf, type Parameter, type Values } from "../address.js";
import { batchesOf, digitsOf, type Batches } from "./batches.js";
import { DEPTH, LOSS_NAMES, type LossName, type StepSettings } from "./losses.js";
import { PRESETS, presetOf } from "./presets.js";

const names = PRESETS.map(({ name }) => name);

/** A number that is core's default where the reader has set none. */
function setting(min: number, max: number): Parameter<number | null> {
  const { parse, print } = number(min, { min, max });
  return { initial: null, parse, print: (value) => (value === null ? "" : print(value)) };
}

/** A switch that is off at first. */
const flag: Parameter<boolean> = {
  initial: false,
  parse: (text) => (text === "1" ? true : text === "0" ? false : undefined),
  print: (value) => (value ? "1" : "0"),
};

export const MOST_ITEMS = 12;

export const RANGES = {
  tau: { min: 0.002, max: 0.1, step: 0.001 },
  rho: { min: 0, max: 200, step: 1 },
  delta: { min: 0, max: 0.12, step: 0.005 },
  gamma: { min: 0, max: 50, step: 1 },
  nu: { min: 0, max: 100, step: 1 },
  mu: { min: 0, max: 1, step: 0.05 },
} as const;
export type SettingName = keyof typeof RANGES;

const range = (name: SettingName) => setting(RANGES[name].min, RANGES[name].max);

export const parameters = {
  preset: oneOf(names, names[0] ?? ""),
  /** The scores of the items, and their shared levels. Empty: those of the preset. */
  scores: list(number(0, { min: -1, max: 1 }), []),
  levels: digits([]),
  /** The losses shown. Empty: those of the preset. */
  losses: list<LossName>(oneOf(LOSS_NAMES, LOSS_NAMES[0]), []),
  /** The loss that a training step follows. Null: the first one of the preset. */
  follow: oneOf(LOSS_NAMES, null),
  /** How far a training step moves a score, for each unit of the gradient. */
  rate: number(0.01, { min: 0.001, max: 0.05 }),
  tau: range("tau"),
  rho: range("rho"),
  delta: range("delta"),
  offset: setting(0, 10),
  gamma: range("gamma"),
  nu: range("nu"),
  mu: range("mu"),
  /** Whether both steps start at t = 0, as the papers’ second lines say. */
  at0: flag,
  /** What each batch holds, five digits (batches.ts). Empty: as at the start. */
  batches: digits([]),
};

export type Address = Values<typeof parameters>;

/** What the address means, with the preset filled in. */
export interface State extends StepSettings {
  readonly preset: string;
  readonly scores: readonly number[];
  readonly levels: readonly number[];
  readonly losses: readonly LossName[];
  readonly follow: LossName;
  readonly rate: number;
  readonly batches: Batches;
}

/** The state of an address. Items that do not fit together are those of the preset. */
export function stateOf(address: Address): State {
  const { at0, scores, levels, losses, follow, batches, ...rest } = address;
  const preset = presetOf(address.preset);
  const fit =
    scores.length > 0 &&
    scores.length <= MOST_ITEMS &&
    scores.length === levels.length &&
    levels.every((level) => level <= DEPTH);
  const shown = LOSS_NAMES.filter((name) => (losses.length > 0 ? losses : preset.losses).includes(name));
  return {
    ...rest,
    atZero: at0,
    scores: fit ? scores : preset.scores,
    levels: fit ? levels : preset.levels,
    losses: shown,
    follow: follow ?? preset.losses[0],
    batches: batchesOf(batches),
  };
}

const same = <T>(a: readonly T[], b: readonly T[]) => a.length === b.length && a.every((value, i) => value === b[i]);

/** The address of a state: what is as in the preset is left out. */
export function addressOf(state: State): Address {
  const { atZero, ...rest } = state;
  const preset = presetOf(state.preset);
  const moved = !same(state.scores, preset.scores) || !same(state.levels, preset.levels);
  const ordered = LOSS_NAMES.filter((name) => preset.losses.includes(name));
  return {
    ...rest,
    at0: atZero,
    // A training step gives scores with many digits. Six of them place every dot and arrow.
    scores: moved ? state.scores.map((score) => Number(score.toFixed(6))) : [],
    levels: moved ? state.levels : [],
    losses: same(state.losses, ordered) ? [] : state.losses,
    follow: state.follow === preset.losses[0] ? null : state.follow,
    batches: digitsOf(state.batches),
  };
}

/** The state with the items and losses of a preset; the settings of the steps stay. */
export function withPreset(state: State, name: string): State {
  const { scores, levels, losses } = presetOf(name);
  const shown = LOSS_NAMES.filter((loss) => losses.includes(loss));
  return { ...state, preset: name, scores, levels, losses: shown, follow: losses[0] };
}
