// Makes wasm modules smaller with wasm-opt. Only for release builds, so that other builds stay quick and readable in
// the debugger.
import { spawnSync } from "node:child_process";
import { readFileSync, renameSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { gzipSync } from "node:zlib";

// The features that rustc may use for this target. wasm-opt refuses code with a feature that is not
// enabled.
const features = [
  "bulk-memory",
  "bulk-memory-opt",
  "simd",
  "nontrapping-float-to-int",
  "sign-ext",
  "mutable-globals",
  "reference-types",
  "multivalue",
  "extended-const",
].map((feature) => `--enable-${feature}`);

// Instances of one generic function are nearly alike, and compress well where they stay so and stand together: by name,
// and each without the functions that only it calls. That makes the training ground a sixth smaller, and no slower.
const compressible = ["--one-caller-inline-max-function-size=0", "--reorder-functions-by-name"];

/** Replaces a module by a smaller one and prints its size. */
export function optimise(wasm) {
  const out = `${wasm}.small`;
  const before = statSync(wasm).size;
  const binaryen = dirname(createRequire(import.meta.url).resolve("binaryen/package.json"));
  const { status } = spawnSync(
    process.execPath,
    [join(binaryen, "bin/wasm-opt"), "-Oz", ...features, ...compressible, wasm, "-o", out],
    { stdio: "inherit" },
  );
  if (status !== 0) throw new Error(`wasm-opt failed; ${wasm} is unchanged`);
  renameSync(out, wasm);
  const kilobytes = (bytes) => `${(bytes / 1e3).toFixed(1)} kB`;
  const gzipped = gzipSync(readFileSync(wasm), { level: 9 }).length;
  console.error(
    `${basename(wasm)}: ${kilobytes(before)} → ${kilobytes(statSync(wasm).size)}, ${kilobytes(gzipped)} gzipped`,
  );
}
