import { failure, type Failure } from "./failure.js";
import { pageFile } from "./page-file.js";
import type { Calls, Parity, Phase, Reply, Running } from "./protocol.js";

/** The bytes of one phase of loading, summed over its files. */
export interface PhaseProgress {
  loaded: number;
  /** Null where the size of a file is unknown. */
  total: number | null;
  done: boolean;
  /** Whether a connection broke off, so that the download waits before it goes on. */
  broken: boolean;
}

interface Waiting {
  resolve: (result: never) => void;
  reject: (failure: Failure) => void;
}

interface Listeners {
  progress: (phases: Map<Phase, PhaseProgress>) => void;
  running: (running: Running) => void;
  parity: (parity: Parity) => void;
  died: (failure: Failure) => void;
  /** The server has another bundle now than the one that is open. */
  replaced: () => void;
}

/** The page's side of the worker: one promise per request, and a new worker after one has died. */
export class Client {
  private worker: Worker | null = null;
  private next = 1;
  private readonly waiting = new Map<number, Waiting>();
  private readonly files = new Map<string, { phase: Phase } & PhaseProgress>();

  constructor(private readonly on: Listeners) {}

  call<K extends keyof Calls>(
    kind: K,
    params: Calls[K]["params"],
    transfer: Transferable[] = [],
  ): Promise<Calls[K]["result"]> {
    const worker = (this.worker ??= this.spawn());
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      worker.postMessage({ id, kind, params }, transfer);
    });
  }

  /** Ends the worker and fails all open requests. The next call starts another worker. */
  stop(failure: Failure): void {
    this.worker?.terminate();
    this.worker = null;
    this.files.clear();
    for (const { reject } of this.waiting.values()) reject(failure);
    this.waiting.clear();
  }

  private spawn(): Worker {
    const name = `akin-${Date.now()}-${Math.random()}`;
    const worker = new Worker(pageFile("build/worker.js"), { type: "module", name });
    const died = (reason: string) => {
      if (worker !== this.worker) return;
      const stopped = failure(
        "worker",
        `the engine’s worker stopped${reason && `: ${reason}`}`,
        "it restarts by itself; if it stops again, reload the page",
      );
      this.stop(stopped);
      this.on.died(stopped);
    };
    worker.addEventListener("message", ({ data }: MessageEvent<Reply>) => {
      // The worker holds this lock as long as it lives.
      if ("alive" in data) void navigator.locks.request(name, () => died(""));
      else this.receive(data);
    });
    worker.addEventListener("error", (event) => died(event.message ?? ""));
    worker.addEventListener("messageerror", () => died("a message could not be read"));
    return worker;
  }

  private receive(reply: Exclude<Reply, { alive: true }>): void {
    if ("progress" in reply) {
      const { progress: phase, path, loaded, total, state } = reply;
      const [done, broken] = [state === "done", state === "broken"];
      this.files.set(`${phase}/${path}`, { phase, loaded, total, done, broken });
      this.on.progress(this.phases());
      return;
    }
    if ("running" in reply) {
      this.on.running(reply.running);
      return;
    }
    if ("parity" in reply) {
      this.on.parity(reply.parity);
      return;
    }
    const waiting = this.waiting.get(reply.id);
    this.waiting.delete(reply.id);
    if ("failure" in reply) {
      waiting?.reject(reply.failure);
      if (reply.failure.code === "replaced") this.on.replaced();
    } else waiting?.resolve(reply.result as never);
  }

  private phases(): Map<Phase, PhaseProgress> {
    const phases = new Map<Phase, PhaseProgress>();
    for (const { phase, loaded, total, done, broken } of this.files.values()) {
      const sum = phases.get(phase) ?? { loaded: 0, total: 0, done: true, broken: false };
      phases.set(phase, {
        loaded: sum.loaded + loaded,
        total: sum.total === null || total === null ? null : sum.total + total,
        done: sum.done && done,
        broken: sum.broken || broken,
      });
    }
    return phases;
  }
}
