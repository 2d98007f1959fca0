// The files of onnxruntime-web that each back end needs, as scripts/onnxruntime.mjs copies them. That script refuses
// another version of the package, so that the sizes hold.

import type { Backend } from "./protocol.js";

/** A build of ONNX Runtime: its module, the code that starts its wasm, the wasm, and the bytes of that. */
export interface RuntimeFiles {
  readonly module: string;
  readonly starter: string;
  readonly code: string;
  readonly bytes: number;
}

export const RUNTIME: Readonly<Record<Backend, RuntimeFiles>> = {
  cpu: {
    module: "ort.wasm.min.mjs",
    starter: "ort-wasm-simd-threaded.mjs",
    code: "ort-wasm-simd-threaded.wasm",
    bytes: 14_239_897,
  },
  webgpu: {
    module: "ort.webgpu.min.mjs",
    starter: "ort-wasm-simd-threaded.asyncify.mjs",
    code: "ort-wasm-simd-threaded.asyncify.wasm",
    bytes: 26_781_914,
  },
};
