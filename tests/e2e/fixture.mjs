// Makes the data of the browser tests with the binary that users run: short trainings, their bundles,
// and the embeddings and scores of the command line. Usage: node fixture.mjs AKIN FOLDER
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The pictures that both sides embed: one of every kind on which decoders differ, and a drawing. */
export const PICTURES = [
  "rgb.jpg",
  "progressive.jpg",
  "cmyk-adobe.jpg",
  "turned.jpg",
  "lossy.webp",
  "detail.png",
].map((name) => join(root, "core/tests/images", name));

/** The encoders of the bundle by name, each with its recipe. */
export const RECIPES = {
  HAPPIER: "biomorphs-happier",
  NormSoftmax: "biomorphs-norm-softmax",
};

/** Other encoders over the same gallery: of codes of two lengths, and of the Poincaré ball with HIER's ancestors. */
const INSIDE = {
  "HPDH 16": [
    'model.head={dimension=16, geometry={kind="binary"}}',
    'loss={kind="hpdh"}',
  ],
  "HPDH 32": [
    'model.head={dimension=32, geometry={kind="binary"}}',
    'loss={kind="hpdh"}',
  ],
  HIER: [
    'model.head={dimension=8, geometry={kind="poincare"}}',
    'loss={kind="hier", proxies=12}',
  ],
};

function make(akin, folder) {
  const run = (...args) =>
    execFileSync(akin, args, {
      cwd: folder,
      stdio: ["ignore", "ignore", "inherit"],
    });
  run(
    "biomorphs",
    "data",
    "--branching",
    "3,3,4",
    "--images-per-class",
    "8",
    "--side",
    "64",
  );
  const train = (name, recipe, sets) =>
    run(
      "train",
      join(root, "native-trainer/recipes", `${recipe}.toml`),
      "--out",
      join("runs", name),
      "--device",
      "cpu",
      ...[
        "data.path=data/labels.csv",
        "run.steps=6",
        `run.name=${name}`,
        "sampler.classes_per_batch=8",
        ...sets,
      ].flatMap((set) => ["--set", set]),
    );
  for (const [name, recipe] of Object.entries(RECIPES)) {
    const out = join("runs", name);
    train(name, recipe, []);
    run("embed", out, ...PICTURES, "--out", `${name}.npy`);
    run("eval", out, "--per-query", `${name}-scores.csv`);
  }
  for (const [name, sets] of Object.entries(INSIDE))
    train(name, RECIPES.HAPPIER, sets);
  run(
    "export",
    ...Object.keys(INSIDE).map((name) => join("runs", name)),
    "--out",
    "inside",
    "--title",
    "Inside",
    "--group-bits",
    "--maps",
    "pca,poincare",
  );
  const runs = Object.keys(RECIPES).map((name) => join("runs", name));
  run(
    "export",
    ...runs,
    "--out",
    "bundle",
    "--title",
    "Creatures",
    "--licence",
    "CC0-1.0",
  );
  // The same gallery in half precision, with smaller thumbnails.
  run(
    "export",
    ...runs,
    "--out",
    "half",
    "--title",
    "Half",
    "--licence",
    "CC0-1.0",
    "--half",
    "--thumbnail",
    "32",
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [akin, folder] = process.argv.slice(2);
  if (!akin || !folder) throw new Error("usage: node fixture.mjs AKIN FOLDER");
  if (existsSync(join(folder, "half/bundle.json"))) process.exit(0);
  mkdirSync(folder, { recursive: true });
  make(akin, folder);
}
