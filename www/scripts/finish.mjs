// After trunk: makes the wasm modules of a release smaller, puts the service worker beside index.html, lists the
// page's files with their hashes for it, and compresses them.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
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
    .filter((path) => !/\.html$|\.gz$|^akin-files\.json$|^service-worker\.js$/.test(path))
    .sort()
    .map((path) => {
      const content = readFileSync(join(folder, path));
      return { path, bytes: content.length, sha256: createHash("sha256").update(content).digest("hex") };
    });
  writeFileSync(join(folder, "akin-files.json"), JSON.stringify({ files }));
}

/** Puts a compressed copy beside every text and module: `akin serve` and many web servers send it instead. */
export function compressFiles(folder) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.(css|html|js|json|svg|txt|wasm)$/.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
  }
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
  compressFiles(folder);
}
