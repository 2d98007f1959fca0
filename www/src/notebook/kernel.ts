import { failure } from "../failure.js";
import type { FileAnswer, FileRequest } from "../protocol.js";
import { bytesOf, type Model } from "./model.js";

/** The answer of Python to a message `{ id, file }`; the bytes come beside it. */
interface Answer {
  id: string;
  /** Why there are no bytes; empty if there are. */
  reason: string;
}

/** How long the kernel may take for a file, in milliseconds: it may be busy with another cell. */
const PATIENCE = 60_000;

/** Asks the kernel of a notebook for files: there is no server that has them. */
export class Kernel {
  private readonly waiting = new Map<string, (answer: Answer, bytes: Uint8Array) => void>();
  private readonly receive = (answer: Answer, buffers: readonly unknown[]) => {
    this.waiting.get(answer.id)?.(answer, buffers[0] === undefined ? new Uint8Array() : bytesOf(buffers[0]));
    this.waiting.delete(answer.id);
  };

  constructor(private readonly model: Model) {
    model.on("msg:custom", this.receive);
  }

  file(file: string): Promise<Uint8Array> {
    // Other pages may show the same widget, and get the same answers.
    const id = `${file} ${Math.random()}`;
    return new Promise((resolve, reject) => {
      const refuse = (reason: string, hint: string) => reject(failure("notebook", reason, hint));
      const late = setTimeout(
        () => refuse("the notebook’s kernel did not answer", "run the cell again in a notebook that has a kernel"),
        PATIENCE,
      );
      this.waiting.set(id, ({ reason }, bytes) => {
        clearTimeout(late);
        if (reason === "") resolve(bytes);
        else refuse(reason, "run the cell again");
      });
      this.model.send({ id, file });
    });
  }

  /** As `file`, for one that is compressed. */
  async unpacked(file: string): Promise<Blob> {
    return unpack(await this.file(`${file}.gz`));
  }

  /** A port through which a worker can ask for the files of a folder. */
  port(folder: string): MessagePort {
    const { port1, port2 } = new MessageChannel();
    port1.addEventListener("message", ({ data: { id, path } }: MessageEvent<FileRequest>) => {
      const answer = (bytes: Uint8Array | null, reason: string) =>
        port1.postMessage({ id, bytes, reason } satisfies FileAnswer);
      this.file(`${folder}/${path}`).then(
        (bytes) => answer(bytes, ""),
        ({ message }: Error) => answer(null, message),
      );
    });
    port1.start();
    return port2;
  }

  close(): void {
    this.model.off("msg:custom", this.receive);
  }
}

export const unpack = (bytes: Uint8Array): Promise<Blob> =>
  new Response(
    new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream("gzip")),
  ).blob();
