// Runs the first command of the README without a terminal, and asks the address that it prints for the page and a bundle.
//
//   node tests/first-command.mjs AKIN   AKIN stands for `cargo run --release --`, in this source tree, whose page is built
//   node tests/first-command.mjs        the command as it stands, in a new clone with an empty registry, target and cache;
//                                       then waits for the creatures, too, and prints how long both took
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const CARGO = "cargo run --release --";
const root = fileURLToPath(new URL("..", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "akin-first-command-"));

const [, line] = /```sh\n([^\n#]*)/.exec(
  readFileSync(join(root, "README.md"), "utf8"),
);
const command = line.trim();
assert.ok(
  command.startsWith(`${CARGO} demo`),
  `the first command of the README is \`${command}\``,
);

const [akin] = process.argv.slice(2);
const [program, args, options] = akin ? besideThisPage(akin) : inNewClone();

/** The given program, on any free port, so that nothing else is in its way. */
function besideThisPage(akin) {
  const rest = command.slice(CARGO.length).trim().split(" ");
  return [
    akin,
    [...rest, "--port", "0", "--out", join(scratch, "demo")],
    { cwd: root },
  ];
}

/** The command as it stands. Toolchains of rustup and the settings of cargo stay. */
function inNewClone() {
  const clone = join(scratch, "akin");
  execFileSync("git", ["clone", "--quiet", root, clone]);
  const env = {
    ...process.env,
    CARGO_HOME: join(scratch, "cargo"),
    npm_config_cache: join(scratch, "npm"),
  };
  delete env.CARGO_TARGET_DIR;
  mkdirSync(env.CARGO_HOME);
  const settings = join(
    process.env.CARGO_HOME ?? join(homedir(), ".cargo"),
    "config.toml",
  );
  if (existsSync(settings))
    copyFileSync(settings, join(env.CARGO_HOME, "config.toml"));
  const [program, ...args] = command.split(" ");
  return [program, args, { cwd: clone, env }];
}

/** Asks for a file, checks its hash if one is given, and returns its bytes. */
async function get(address, path, sha256) {
  const answer = await fetch(new URL(path, address));
  assert.equal(answer.status, 200, path);
  const bytes = Buffer.from(await answer.arrayBuffer());
  if (sha256)
    assert.equal(
      createHash("sha256").update(bytes).digest("hex"),
      sha256,
      path,
    );
  return bytes;
}

const getJson = async (...args) => JSON.parse(await get(...args));

/** Asks for every file of the page, and for every bundle with its files. Returns the titles of the bundles. */
async function ask(address) {
  assert.match(String(await get(address, "")), /<title>akin/);
  const { files } = await getJson(address, "akin-files.json");
  for (const { path, sha256 } of files) await get(address, path, sha256);
  for (const module of ["akin-web", "akin-science", "akin-training-ground"]) {
    assert.ok(
      files.some(({ path }) => path === `${module}_bg.wasm`),
      module,
    );
  }
  const { bundles } = await getJson(address, "bundles.json");
  assert.notEqual(bundles.length, 0);
  for (const bundle of bundles) {
    const { files } = await getJson(address, `${bundle.path}/bundle.json`);
    for (const { path, sha256 } of files)
      await get(address, `${bundle.path}/${path}`, sha256);
  }
  return bundles.map(({ title }) => title);
}

const began = Date.now();
const figure = (what) =>
  console.log(`figure: ${what}: ${Math.round((Date.now() - began) / 1000)} s`);
const child = spawn(program, args, {
  ...options,
  stdio: ["ignore", "pipe", "pipe"],
  detached: true,
});
child.stderr.pipe(process.stderr);
const ended = new Promise((_, reject) => {
  child.once("error", reject);
  child.once("exit", (code, signal) =>
    reject(new Error(`\`${command}\` ended with ${code ?? signal}`)),
  );
});
/** Waits until a stream says this. */
const says = (stream, pattern) => {
  const found = new Promise((resolve) => {
    let text = "";
    stream.on(
      "data",
      (part) => pattern.test((text += part)) && resolve(pattern.exec(text)[0]),
    );
  });
  return Promise.race([ended, found]);
};
const creatures = says(child.stderr, /Serving the creatures/);
creatures.catch(() => {});
try {
  const address = await says(child.stdout, /^http:\S+(?=\n)/m);
  console.log(
    `the page and its galleries at ${address}: ${(await ask(address)).join(", ")}`,
  );
  if (!akin) {
    figure(
      "the README's first command in a new clone, until the page is served",
    );
    await creatures;
    figure(
      "the README's first command in a new clone, until the creatures are served",
    );
    assert.equal((await ask(address)).length, 2);
  }
} finally {
  // The group, because cargo has started akin.
  if (child.pid && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
  rmSync(scratch, { recursive: true, force: true });
}
