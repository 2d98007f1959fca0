// What crosses between the page and the worker of the training ground.

import type { Failure } from "../failure.js";
import type { Description, Offer, Settings, Space, State } from "../messages/training.js";

export const SPACES = ["circle", "sphere", "disk"] as const satisfies readonly Space[];

/** What a run follows from. The module has a default for `proxy_rate`. */
export type RunSettings = Omit<Settings, "proxy_rate">;

/** The requests to the worker. */
export interface Calls {
  open: { params: { text: string }; result: Description };
  losses: { params: { space: Space }; result: Offer[] };
  start: { params: { runs: RunSettings[] }; result: State[] };
  /** Takes steps in every run, and measures after the last. */
  advance: { params: { steps: number; measured: boolean }; result: State[] };
}

export type Request = { [K in keyof Calls]: { id: number; kind: K; params: Calls[K]["params"] } }[keyof Calls];
/** The worker holds a lock of its own name while it lives, and says so once. */
export type Reply =
  { alive: true } | { id: number; result: Calls[keyof Calls]["result"] } | { id: number; failure: Failure };
