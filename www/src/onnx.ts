// Runs the network of an encoder that is an ONNX file, with onnxruntime-web. Its files lie in the folder `onnxruntime`
// beside the page, and are downloaded when a reader first opens such an encoder.

import type { InferenceSession, Tensor } from "onnxruntime-web";
import { download, type Progress } from "./download.js";
import { failure, toFailure } from "./failure.js";
import type { Backend } from "./protocol.js";
import type { OnnxEntry } from "./messages/engine.js";
import { RUNTIME } from "./onnx-runtime.js";
import { pageFile } from "./page-file.js";

/** One output of a network, as the engine takes it: numbers in half precision as their bits. */
export interface Output {
  shape: readonly number[];
  values: Float32Array | Uint16Array;
}

/** The numbers of an image, those in half precision as their bits. */
type Image = Float32Array | Uint16Array | Uint8Array;

/** The names of their types. */
const TYPES = { f32: "float32", f16: "float16", u8: "uint8" } as const;

/** A network that is ready. */
export interface Network {
  run(image: Image, shape: readonly number[]): Promise<Output>;
  release(): Promise<void>;
}

interface Runtime {
  env: { logLevel?: string; wasm: Record<string, unknown> };
  InferenceSession: { create(file: Uint8Array, options: InferenceSession.SessionOptions): Promise<InferenceSession> };
  Tensor: new (type: string, data: Image, shape: readonly number[]) => Tensor;
}

const started = new Map<Backend, Promise<Runtime>>();

/** Opens a file on a back end. `progress` is told of the download of ONNX Runtime. */
export async function openNetwork(
  encoder: string,
  entry: OnnxEntry,
  file: Uint8Array,
  backend: Backend,
  progress: Progress,
): Promise<Network> {
  const runtime = started.get(backend) ?? start(encoder, backend, progress);
  started.set(backend, runtime);
  runtime.catch(() => started.delete(backend));
  const { InferenceSession, Tensor } = await runtime;
  const refused = (error: unknown) => refusal(error, encoder, entry.file, backend);
  const session = await InferenceSession.create(file, {
    executionProviders: [backend === "webgpu" ? "webgpu" : "wasm"],
  }).catch((error: unknown) => Promise.reject(refused(error)));
  for (const [what, name, names] of [
    ["input", entry.input, session.inputNames],
    ["output", entry.output, session.outputNames],
  ] as const) {
    if (names.includes(name)) continue;
    await session.release();
    throw failure(
      "bundle",
      `${entry.file} has no ${what} ${name}; it has ${names.join(", ")}`,
      "export the bundle again with `akin export`",
    );
  }
  return {
    async run(image, shape) {
      const input = new Tensor(TYPES[entry.element_type], image, shape);
      try {
        const results = await session.run({ [entry.input]: input }, [entry.output]);
        const output = results[entry.output];
        if (!output) throw new Error(`it gave no ${entry.output}`);
        return { shape: output.dims, values: numbers(await output.getData()) };
      } catch (error) {
        throw refused(error);
      }
    },
    release: () => session.release(),
  };
}

/** The numbers of an output. Some browsers have an array of their own for numbers in half precision. */
function numbers(data: Tensor.DataType): Output["values"] {
  if (data instanceof Float32Array || data instanceof Uint16Array) return data;
  if (ArrayBuffer.isView(data) && data.constructor.name === "Float16Array")
    return new Uint16Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength / 2);
  throw new Error("its output is of another type than float32 and float16");
}

async function start(encoder: string, backend: Backend, progress: Progress): Promise<Runtime> {
  const { module, starter, code, bytes } = RUNTIME[backend];
  const address = (name: string) => pageFile(`onnxruntime/${name}`);
  // The service worker keeps the files that this list names. Without it the folder is not there.
  await download(address("akin-files.json"), null, () => {}).catch(() => {
    throw failure(
      "network",
      `this page lacks ONNX Runtime, which the encoder ${encoder} needs`,
      "publish the page again with this bundle by `akin export --site`, or open it with `akin serve`",
    );
  });
  const wasm = await download(address(code), bytes, progress);
  const runtime = (await import(address(module))) as Runtime;
  runtime.env.logLevel = "error";
  // Threads would need a page that is isolated from all other origins.
  Object.assign(runtime.env.wasm, {
    numThreads: 1,
    proxy: false,
    wasmBinary: wasm.buffer,
    wasmPaths: { mjs: address(starter) },
  });
  return runtime;
}

/** What ONNX Runtime says, as a failure: of the device with WebGPU, which the CPU may not share, else of the file. */
function refusal(error: unknown, encoder: string, file: string, backend: Backend) {
  const caught = toFailure(error);
  if (caught.code === "memory" || /bad_alloc|out of memory/i.test(caught.message)) {
    return failure(
      "memory",
      `the browser has no memory left for the encoder ${encoder} (${file})`,
      "close other tabs and programs, and try again",
    );
  }
  return failure(
    backend === "webgpu" ? "device" : "weights",
    `ONNX Runtime could not run ${file} of the encoder ${encoder}: ${caught.message}`,
    "use another encoder, or export this one with another version of its ONNX file",
  );
}
