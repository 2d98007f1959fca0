// The page's scripts and styles have the same names and bytes in whichever folder they are built, so that a release can be
// reproduced.
import assert from "node:assert/strict";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";

const www = fileURLToPath(new URL("../../www", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "akin-build-"));
after(() => rmSync(scratch, { recursive: true }));

/** The names and contents of the scripts and styles that are built in a folder. */
function built(folder) {
  mkdirSync(folder, { recursive: true });
  for (const part of ["src", "scripts", "package.json", "tsconfig.json"]) {
    cpSync(join(www, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(www, "node_modules"), join(folder, "node_modules"));
  const { status, stderr } = spawnSync("npm", ["run", "--silent", "build"], {
    cwd: folder,
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
  return readdirSync(join(folder, "build"))
    .sort()
    .map((name) => [name, readFileSync(join(folder, "build", name), "base64")]);
}

test("the scripts of the page do not depend on the folder in which they are built", () => {
  const [one, two] = ["one", "two"].map((name) => built(join(scratch, name)));
  assert.deepEqual(
    one.map(([name]) => name),
    two.map(([name]) => name),
  );
  assert.deepEqual(one, two);
});
