// The worker of the training ground: trains one or two networks, so that the page stays smooth.

import { toFailure } from "../failure.js";
import type { Description, Offer, State } from "../messages/training.js";
import { pageFile } from "../page-file.js";
import type { Calls, Reply, Request } from "./protocol.js";

interface Scope {
  readonly name: string;
  postMessage(message: Reply): void;
  addEventListener(type: "message", listener: (event: MessageEvent<Request>) => void): void;
}
const scope = self as unknown as Scope;

interface Ground {
  describe(): Description;
  /** Takes a `Space` as JSON. */
  losses(space: string): Offer[];
  /** Takes `RunSettings[]` as JSON. */
  start(runs: string): void;
  step(run: number): number;
  state(run: number, measured: boolean): State;
}

interface GroundModule {
  /** Gives what runs the constructors of all crates, which the module needs once, before anything else. */
  default(): Promise<{ __wasm_call_ctors(): void }>;
  Ground: new (text: string) => Ground;
}

let ground: Ground | null = null;
let runs = 0;

/** The lock ends with the worker, however it ends, and tells the page. */
void navigator.locks.request(scope.name, () => {
  scope.postMessage({ alive: true });
  return new Promise(() => {});
});

let queue: Promise<void> = Promise.resolve();
scope.addEventListener("message", ({ data }) => {
  queue = queue.then(() => answer(data));
});

async function answer(request: Request): Promise<void> {
  try {
    scope.postMessage({ id: request.id, result: await handle(request) });
  } catch (error) {
    scope.postMessage({ id: request.id, failure: toFailure(error) });
  }
}

async function handle({ kind, params }: Request): Promise<Calls[keyof Calls]["result"]> {
  if (kind === "open") {
    const module = (await import(pageFile("akin-training-ground.js"))) as GroundModule;
    const exports = await module.default();
    exports.__wasm_call_ctors();
    ground = new module.Ground(params.text);
    return ground.describe();
  }
  if (!ground) throw new Error("the training ground is not open");
  switch (kind) {
    case "losses":
      return ground.losses(JSON.stringify(params.space));
    case "start":
      ground.start(JSON.stringify(params.runs));
      runs = params.runs.length;
      return states(ground, (ground, run) => ground.state(run, true));
    case "advance":
      return states(ground, (ground, run) => {
        for (let step = 0; step < params.steps; step++) ground.step(run);
        return ground.state(run, params.measured);
      });
  }
}

const states = (from: Ground, each: (ground: Ground, run: number) => State): State[] =>
  Array.from({ length: runs }, (_, run) => each(from, run));
