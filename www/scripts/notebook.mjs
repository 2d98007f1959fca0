// Writes what the widgets of the package for Python need into that package: their script, and the engine, which the
// kernel gives to the map. The wheels of a release hold these files.
//
//   node scripts/notebook.mjs [FOLDER]    of the page in dist/, which scripts/page.mjs builds
import { build } from "esbuild";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { copyLicences, options } from "./build.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = join(root, "dist");
const [out = join(root, "../core/python/python/akin/page")] = process.argv.slice(2);

const { plugins, ...scripts } = options(out);

/** Gives scripts the files of the page that they hold in themselves. */
const heldFiles = {
  name: "held-files",
  setup(plugin) {
    plugin.onResolve({ filter: /^(page|script):/ }, ({ path }) => {
      const [namespace, file] = path.split(":");
      return { path: file, namespace };
    });
    plugin.onLoad({ filter: /./, namespace: "page" }, ({ path }) => {
      const content = readFileSync(join(page, path));
      return path.endsWith(".wasm")
        ? { contents: gzipSync(content, { level: 9 }), loader: "binary" }
        : { contents: content, loader: "text" };
    });
    plugin.onLoad({ filter: /./, namespace: "script" }, async ({ path }) => {
      const entryPoints = [join(root, "src", path)];
      const { outputFiles } = await build({ ...alone, entryPoints, plugins, write: false });
      return { contents: outputFiles[0].text, loader: "text" };
    });
  },
};

/** One file for each script: a notebook gives a widget no address from which it could import others. */
const alone = { ...scripts, splitting: false, metafile: false, loader: { ".woff2": "dataurl" } };

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
await build({ ...alone, entryPoints: { widget: "src/notebook/widget.ts" }, plugins: [...plugins, heldFiles] });
for (const file of ["akin-web.js", "akin-web_bg.wasm"]) {
  writeFileSync(join(out, `${file}.gz`), gzipSync(readFileSync(join(page, file)), { level: 9 }));
}
copyLicences(out);
