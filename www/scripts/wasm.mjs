// `npm run science [FOLDER]`: builds the science module (crate akin-science) alone into a folder, which takes a minute
// the first time. The mock server uses it; scripts/page.mjs builds all modules. With `--training` it builds the training
// ground instead, which takes minutes the first time.
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { optimise } from "./optimise.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Crates with the same large dependencies, which a quick build compiles once. */
const TOGETHER = ["akin-web", "akin-training-ground"];

/** In the engine, rankings and pictures wait for core. The other modules have little to compute, and are small. */
const FAST_CORE = ["--config", "profile.page.package.akin-core.opt-level=3"];

/**
 * Writes NAME.js and NAME_bg.wasm of some crates into `folder`. Each is compiled by its own invocation of cargo, so that
 * it has only the features that it asks for itself. With `quick`, the modules are there much sooner, but are larger.
 */
export function buildModules(names, folder, { quick = false } = {}) {
  mkdirSync(folder, { recursive: true });
  const [bindgen] = cargo("-p", "akin-bindgen", "--profile", "page-quick").map(({ executable }) => executable);
  for (const name of names) {
    const crates = quick && TOGETHER.includes(name) ? TOGETHER : [name];
    const profile = quick ? "page-quick" : "page";
    const packages = crates.flatMap((crate) => ["-p", crate]);
    const settings = name === "akin-web" && !quick ? FAST_CORE : [];
    const [module] = cargo(...packages, "--profile", profile, "--target", "wasm32-unknown-unknown", ...settings)
      .flatMap(({ filenames }) => filenames)
      .filter((file) => basename(file) === `${name.replaceAll("-", "_")}.wasm`);
    // The optimiser puts functions in the order of their names.
    run(bindgen, [folder, name, module, ...(quick ? ["--without-names"] : [])]);
    if (!quick) optimise(join(folder, `${name}_bg.wasm`));
  }
}

/** Builds with cargo. Returns what it says of the files that it has made. */
function cargo(...args) {
  const json = run("cargo", ["build", "--locked", "--message-format=json-render-diagnostics", ...args]);
  return json
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .filter(({ reason, target }) => reason === "compiler-artifact" && /bin|cdylib/.test(target.kind));
}

/** Runs a program and returns what it prints on stdout. */
function run(program, args) {
  const { status, stdout, error } = spawnSync(program, args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1 << 26,
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status === 0) return stdout;
  throw new Error(`${program} ${error ? `cannot be started (${error.code})` : `failed (${status})`}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder = join(root, "www/mock/out")] = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
  buildModules([process.argv.includes("--training") ? "akin-training-ground" : "akin-science"], folder);
}
