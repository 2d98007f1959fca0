// After trunk: makes the engine smaller with wasm-opt. Only for release builds, so that other builds
// stay quick and readable in the debugger.
import { spawnSync } from "node:child_process";
import { readFileSync, renameSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const explicit = process.argv[2];
if (!explicit && process.env.TRUNK_PROFILE !== "release") process.exit(0);

const folder = explicit ?? process.env.TRUNK_STAGING_DIR ?? fileURLToPath(new URL("../dist", import.meta.url));
const wasm = join(folder, "akin-web_bg.wasm");
const out = `${wasm}.small`;
const before = statSync(wasm).size;

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

const binaryen = dirname(createRequire(import.meta.url).resolve("binaryen/package.json"));
const { status } = spawnSync(process.execPath, [join(binaryen, "bin/wasm-opt"), "-Oz", ...features, wasm, "-o", out], {
  stdio: "inherit",
});
if (status !== 0) {
  console.error("wasm-opt failed; the engine is unchanged");
  process.exit(status ?? 1);
}
renameSync(out, wasm);

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`;
console.error(
  `akin-web_bg.wasm: ${megabytes(before)} → ${megabytes(statSync(wasm).size)}, ` +
    `${megabytes(gzipSync(readFileSync(wasm), { level: 9 }).length)} gzipped`,
);
