// After trunk: makes the wasm modules of a release smaller, puts the service worker beside index.html, and
// lists the page's files with their hashes for it.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { optimise } from "./optimise.mjs";

/** Writes `akin-files.json`: every file of the page but its documents, which the service worker always asks for. */
export function listFiles(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll("\\", "/"),
    )
    .filter((path) => !/\.html$|^akin-files\.json$|^service-worker\.js$/.test(path))
    .sort()
    .map((path) => {
      const content = readFileSync(join(folder, path));
      return { path, bytes: content.length, sha256: createHash("sha256").update(content).digest("hex") };
    });
  writeFileSync(join(folder, "akin-files.json"), JSON.stringify({ files }));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const explicit = process.argv[2];
  const folder = explicit ?? process.env.TRUNK_STAGING_DIR ?? fileURLToPath(new URL("../dist", import.meta.url));
  if (explicit || process.env.TRUNK_PROFILE === "release") {
    for (const name of readdirSync(folder).filter((name) => name.endsWith("_bg.wasm"))) optimise(join(folder, name));
  }
  // A service worker controls only pages beside it or below.
  renameSync(join(folder, "build/service-worker.js"), join(folder, "service-worker.js"));
  listFiles(folder);
}
