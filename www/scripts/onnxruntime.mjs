// Copies ONNX Runtime for the page, which runs encoders that are ONNX files, from the package onnxruntime-web.
//
//   node scripts/onnxruntime.mjs     writes the list onnxruntime/akin-files.json, after an update of the package
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const distribution = join(root, "node_modules/onnxruntime-web/dist");
const list = join(root, "onnxruntime/akin-files.json");

/** The builds for the CPU and for WebGPU: each a module, the code that starts its wasm, and the wasm. */
const FILES = [
  "ort.wasm.min.mjs",
  "ort-wasm-simd-threaded.mjs",
  "ort-wasm-simd-threaded.wasm",
  "ort.webgpu.min.mjs",
  "ort-wasm-simd-threaded.asyncify.mjs",
  "ort-wasm-simd-threaded.asyncify.wasm",
];

function describe(path) {
  const content = readFileSync(join(distribution, path));
  return { path, bytes: content.length, sha256: createHash("sha256").update(content).digest("hex") };
}

/** Copies the files of the list, the list and the licence into a folder. Throws if the package has other files. */
export function copyRuntime(folder) {
  mkdirSync(folder, { recursive: true });
  for (const file of JSON.parse(readFileSync(list, "utf8")).files) {
    if (describe(file.path).sha256 !== file.sha256)
      throw new Error(`${file.path} of onnxruntime-web is not that of the list: run node scripts/onnxruntime.mjs`);
    copyFileSync(join(distribution, file.path), join(folder, file.path));
  }
  copyFileSync(list, join(folder, "akin-files.json"));
  copyFileSync(join(root, "onnxruntime/LICENCE.txt"), join(folder, "LICENCE.txt"));
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(list, `${JSON.stringify({ files: FILES.map(describe) }, null, 2)}\n`);
