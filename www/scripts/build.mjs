// Bundles the page's own scripts and styles into build/ and prints their sizes.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join, relative } from "node:path";
import { gzipSync } from "node:zlib";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Gives a script that imports a stylesheet its text, bundled and minified, for shadow roots. */
const stylesheetTexts = {
  name: "stylesheet-texts",
  setup(plugins) {
    // Relative to this folder, because the hash in a file name covers the path.
    plugins.onResolve({ filter: /\.css$/ }, ({ path, kind, resolveDir }) =>
      kind === "import-statement"
        ? { path: relative(root, join(resolveDir, path)), namespace: "stylesheet-text" }
        : undefined,
    );
    plugins.onLoad({ filter: /./, namespace: "stylesheet-text" }, async ({ path }) => {
      const file = join(root, path);
      const { outputFiles } = await build({ entryPoints: [file], bundle: true, minify: true, write: false });
      return { contents: outputFiles[0].text, loader: "text", watchFiles: [file] };
    });
  },
};

/** The options of esbuild; the mock server uses them, too. */
export const options = (outdir) => ({
  absWorkingDir: root,
  entryPoints: {
    page: "src/page.ts",
    embed: "src/embed.ts",
    worker: "src/worker.ts",
    "training-worker": "src/training/worker.ts",
    theme: "src/theme.ts",
    style: "src/page.css",
    "service-worker": "src/offline/service-worker.ts",
  },
  outdir,
  bundle: true,
  format: "esm",
  splitting: true,
  chunkNames: "[name]-[hash]",
  plugins: [stylesheetTexts],
  metafile: true,
  target: "es2022",
  minify: true,
  sourcemap: false,
  legalComments: "none",
  loader: { ".woff2": "file" },
  assetNames: "[name]",
});

/** Copies what lies beside the scripts: icon, creatures of the training ground, licences of the packages in them. */
export function copyAssets(outdir) {
  mkdirSync(outdir, { recursive: true });
  copyFileSync(join(root, "src/mark.svg"), join(outdir, "mark.svg"));
  for (const name of ["creatures.json", "creatures.jpg"]) {
    copyFileSync(join(root, "src/training", name), join(outdir, name));
  }
  copyLicences(outdir);
}

/** Copies the licences of the packages in the scripts. */
export function copyLicences(outdir) {
  for (const [name, from] of [
    ["LICENCE-lit.txt", "lit/LICENSE"],
    ["LICENCE-fflate.txt", "fflate/LICENSE"],
    ["LICENCE-source-serif-4.txt", "@fontsource-variable/source-serif-4/LICENSE"],
    ["LICENCE-source-sans-3.txt", "@fontsource-variable/source-sans-3/LICENSE"],
  ]) {
    copyFileSync(join(root, "node_modules", from), join(outdir, name));
  }
}

/** The files that a reader needs before the first interaction: those of the page, and the view shown first. */
const FIRST = ["src/page.ts", "src/worker.ts", "src/theme.ts", "src/page.css", "src/views/search.ts"];
/** In bytes, gzipped. */
const BUDGET = { first: 120_000, all: 250_000 };

/** The outputs of `entries` with everything that they import statically. */
function closure(outputs, entries) {
  const files = new Set();
  const add = (file) => {
    if (files.has(file)) return;
    files.add(file);
    for (const { path, kind } of outputs[file].imports) if (kind === "import-statement") add(path);
  };
  for (const [file, { entryPoint }] of Object.entries(outputs)) if (entries.includes(entryPoint)) add(file);
  return files;
}

/** Writes scripts and styles into a folder, and prints their sizes. Throws if they exceed their budget. */
export async function buildScripts(outdir) {
  rmSync(outdir, { recursive: true, force: true });
  const { metafile } = await build(options(outdir));
  copyAssets(outdir);
  const first = closure(metafile.outputs, FIRST);
  const sums = { first: 0, all: 0 };
  const print = (name, bytes) =>
    console.error(`${name.padEnd(32)} ${(bytes / 1000).toFixed(1).padStart(6)} kB gzipped`);
  for (const file of Object.keys(metafile.outputs).filter((name) => /\.(js|css)$/.test(name))) {
    const bytes = gzipSync(readFileSync(join(root, file)), { level: 9 }).length;
    print(file.replace(/.*\//, ""), bytes);
    sums.all += bytes;
    if (first.has(file)) sums.first += bytes;
  }
  print("before the first interaction", sums.first);
  print("with everything opened", sums.all);
  for (const [which, limit] of Object.entries(BUDGET)) {
    if (sums[which] <= limit) continue;
    throw new Error(`the page's scripts and styles exceed their budget (${which}) of ${limit / 1000} kB gzipped`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildScripts(join(root, "build"));
