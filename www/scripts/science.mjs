// `npm run science [FOLDER]`: builds the science module (crate akin-science) alone, in seconds, into a folder. The mock
// server uses it; `akin page` builds it with Trunk. With `--training` it builds the training ground instead, which takes
// minutes the first time.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { optimise } from "./optimise.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const TARGET = "wasm32-unknown-unknown";

/** Writes NAME.js and NAME_bg.wasm of a crate into `folder`. */
export function buildModule(name, folder) {
  const cargo = (...args) =>
    run("cargo", args, "install Rust from https://rustup.rs, then `rustup target add wasm32-unknown-unknown`");
  cargo("build", "--quiet", "--locked", "-p", name, "--profile", "page", "--target", TARGET);
  const metadata = JSON.parse(cargo("metadata", "--format-version", "1", "--no-deps"));
  const wasm = join(metadata.target_directory, TARGET, `page/${name.replaceAll("-", "_")}.wasm`);
  mkdirSync(folder, { recursive: true });
  run(
    wasmBindgen(),
    ["--target", "web", "--no-typescript", "--out-name", name, "--out-dir", folder, wasm],
    "run `akin page` once, which installs the version of wasm-bindgen that the project uses",
  );
  optimise(join(folder, `${name}_bg.wasm`));
}

/** The program that `akin page` has installed, or the one in PATH. */
function wasmBindgen() {
  const cache = process.env.AKIN_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "akin");
  const installed = join(cache, "tools/bin/wasm-bindgen");
  return existsSync(installed) ? installed : "wasm-bindgen";
}

/** Runs a program and returns what it prints on stdout. Throws with a hint if it fails. */
function run(program, args, hint) {
  const { status, stdout, error } = spawnSync(program, args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1 << 26,
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status === 0) return stdout;
  throw new Error(`${program} ${error ? `cannot be started (${error.code})` : `failed (${status})`}; ${hint}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder = join(root, "www/mock/out")] = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
  buildModule(process.argv.includes("--training") ? "akin-training-ground" : "akin-science", folder);
}
