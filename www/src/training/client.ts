import { failure, type Failure } from "../failure.js";
import { pageFile } from "../page-file.js";
import type { Calls, Reply } from "./protocol.js";

interface Waiting {
  resolve: (result: never) => void;
  reject: (failure: Failure) => void;
}

/** The page's side of the worker of the training ground: one promise for each request. */
export class TrainingClient {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private next = 1;
  private ended: Failure | null = null;

  /** Starts a worker. `died` is called once if it stops by itself. */
  constructor(private readonly died: (failure: Failure) => void) {
    const name = `akin-training-${Date.now()}-${Math.random()}`;
    this.worker = new Worker(pageFile("build/training-worker.js"), { type: "module", name });
    const stopped = (reason: string) => {
      if (this.ended) return;
      const failed = failure(
        "worker",
        `the worker of the training ground stopped${reason && `: ${reason}`}`,
        "start it again; the same settings give the same numbers",
      );
      this.stop(failed);
      this.died(failed);
    };
    this.worker.addEventListener("message", ({ data }: MessageEvent<Reply>) => {
      // The worker holds this lock as long as it lives.
      if ("alive" in data) void navigator.locks.request(name, () => stopped(""));
      else this.receive(data);
    });
    this.worker.addEventListener("error", (event) => stopped(event.message ?? ""));
    this.worker.addEventListener("messageerror", () => stopped("a message could not be read"));
  }

  call<K extends keyof Calls>(kind: K, params: Calls[K]["params"]): Promise<Calls[K]["result"]> {
    if (this.ended) return Promise.reject(this.ended);
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, kind, params });
    });
  }

  /** Ends the worker and fails all open requests. */
  stop(reason: Failure): void {
    this.ended = reason;
    this.worker.terminate();
    for (const { reject } of this.waiting.values()) reject(reason);
    this.waiting.clear();
  }

  private receive(reply: Exclude<Reply, { alive: true }>): void {
    const waiting = this.waiting.get(reply.id);
    this.waiting.delete(reply.id);
    if ("failure" in reply) waiting?.reject(reply.failure);
    else waiting?.resolve(reply.result as never);
  }
}
