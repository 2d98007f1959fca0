// The state of the training ground that the address holds.

import { number, oneOf, text, whole, type Values } from "../address.js";
import { EXAMPLES, type Example } from "./presets.js";
import { SPACES } from "./protocol.js";

/** The sizes of a batch: P species with 4 creatures each. */
export const BATCHES = [8, 16, 32, 64, 96, 192] as const;
export const CREATURES_PER_SPECIES = 4;

const [first] = EXAMPLES as readonly [Example];
const batch = (initial: number) => oneOf(BATCHES.map(String), String(initial));

export const parameters = {
  space: oneOf(SPACES, first.space),
  /** The loss of the first run and of the second, see choice.ts. Without a second loss there is one run. */
  a: text(first.a),
  b: text(first.b),
  batch_a: batch(first.batch_a),
  batch_b: batch(first.batch_b),
  rate: number(0.005, { min: 0.0001, max: 0.1 }),
  seed: whole(1),
  /** The steps taken. A link trains as far. */
  steps: whole(0, { max: 2000 }),
  /** A family to look at, by its number. */
  family: whole(null),
};

export type GroundSettings = Values<typeof parameters>;

/** The state of an example. */
export const stateOf = ({ space, a, b, batch_a, batch_b }: Example) => ({
  space,
  a,
  b,
  batch_a: String(batch_a),
  batch_b: String(batch_b),
});

/** The example that a state shows. */
export const exampleOf = (ground: GroundSettings): Example | undefined =>
  EXAMPLES.find((example) =>
    Object.entries(stateOf(example)).every(([name, value]) => ground[name as keyof GroundSettings] === value),
  );

export const initialState = (): GroundSettings =>
  Object.fromEntries(Object.entries(parameters).map(([name, { initial }]) => [name, initial])) as GroundSettings;
