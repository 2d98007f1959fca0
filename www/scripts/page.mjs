// Builds the whole page, as `akin page` does: the wasm modules, the scripts and styles, the list of its files for the
// service worker, and a compressed copy of each text and module.
//
//   node scripts/page.mjs            into dist/: small, for releases, publishing and tests
//   node scripts/page.mjs --quick    into dist-quick/: larger, and there much sooner, for this machine
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { buildScripts } from "./build.mjs";
import { copyRuntime } from "./onnxruntime.mjs";
import { buildModules } from "./wasm.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Writes `akin-files.json`: every file of the page but its documents, which the service worker always asks for. */
function listFiles(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll("\\", "/"),
    )
    .filter((path) => !/\.html$|^service-worker\.js$/.test(path))
    .sort()
    .map((path) => {
      const content = readFileSync(join(folder, path));
      return { path, bytes: content.length, sha256: createHash("sha256").update(content).digest("hex") };
    });
  writeFileSync(join(folder, "akin-files.json"), JSON.stringify({ files }));
}

/** Puts a compressed copy beside every text and module: `akin serve` and many web servers send it instead. */
function compressFiles(folder) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.(css|html|m?js|json|svg|txt|wasm)$/.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
  }
}

const quick = process.argv.includes("--quick");
const out = join(root, quick ? "dist-quick" : "dist");
// A build that fails or is stopped leaves the earlier page as it is.
const draft = `${out}.draft`;
rmSync(draft, { recursive: true, force: true });
mkdirSync(draft);
await buildScripts(join(draft, "build"));
buildModules(["akin-web", "akin-science", "akin-training-ground"], draft, { quick });
for (const document of ["index.html", "embed.html"]) copyFileSync(join(root, document), join(draft, document));
// A service worker controls only pages beside it or below.
renameSync(join(draft, "build/service-worker.js"), join(draft, "service-worker.js"));
listFiles(draft);
// It is in no list of the page: a reader who never opens an ONNX file never gets it.
copyRuntime(join(draft, "onnxruntime"));
if (!quick) compressFiles(draft);
rmSync(out, { recursive: true, force: true });
renameSync(draft, out);
