// Bundles the page's own scripts and styles into build/ and prints their sizes.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The options of esbuild; the mock server uses them, too. */
export const options = (outdir) => ({
  absWorkingDir: root,
  entryPoints: { page: "src/page.ts", worker: "src/worker.ts", theme: "src/theme.ts", style: "src/page.css" },
  outdir,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  sourcemap: false,
  legalComments: "none",
  loader: { ".woff2": "file" },
  assetNames: "[name]",
});

/** Copies what lies beside the scripts: the icon, and the licences of the packages in them. */
export function copyAssets(outdir) {
  mkdirSync(outdir, { recursive: true });
  copyFileSync(join(root, "src/mark.svg"), join(outdir, "mark.svg"));
  for (const [name, from] of [
    ["LICENCE-lit.txt", "lit/LICENSE"],
    ["LICENCE-source-serif-4.txt", "@fontsource-variable/source-serif-4/LICENSE"],
    ["LICENCE-source-sans-3.txt", "@fontsource-variable/source-sans-3/LICENSE"],
  ]) {
    copyFileSync(join(root, "node_modules", from), join(outdir, name));
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const outdir = join(root, "build");
  rmSync(outdir, { recursive: true, force: true });
  await build(options(outdir));
  copyAssets(outdir);
  let sum = 0;
  for (const name of readdirSync(outdir).filter((name) => /\.(js|css)$/.test(name))) {
    const bytes = gzipSync(readFileSync(join(outdir, name))).length;
    sum += bytes;
    console.error(`${name.padEnd(12)} ${(bytes / 1000).toFixed(1).padStart(6)} kB gzipped`);
  }
  console.error(`${"total".padEnd(12)} ${(sum / 1000).toFixed(1).padStart(6)} kB gzipped`);
  if (sum > 150_000) {
    console.error("the page's scripts and styles exceed their budget of 150 kB gzipped");
    process.exit(1);
  }
}
