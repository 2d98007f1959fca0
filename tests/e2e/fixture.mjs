// Makes the data of the browser tests with the binary that users run: short trainings, their bundles,
// and the embeddings and scores of the command line. Usage: node fixture.mjs AKIN FOLDER
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
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

/** A network whose outputs are tokens, which tests/peers/onnx_network.py has written. */
const ONNX = join(root, "tests/e2e/tokens.onnx");

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

/**
 * Tables of the same creatures without a tree: each species of the first family of an order is also of the last order, and
 * a matrix of relevance between species, by the digits of their numbers.
 */
function writeKinship(folder) {
  const file = (name) => join(folder, "data", name);
  const [header, ...rows] = readFileSync(file("labels.csv"), "utf8")
    .trim()
    .split("\n");
  const cells = rows.map((row) => row.split(","));
  const orders = [...new Set(cells.map(([, order]) => order))];
  const first = new Set(
    orders.map((order) => cells.find((row) => row[1] === order)[2]),
  );
  const both = cells.map(([path, order, ...rest]) => {
    const other = order === orders.at(-1) ? orders[0] : orders.at(-1);
    return [path, first.has(rest[0]) ? `${order};${other}` : order, ...rest];
  });
  writeFileSync(
    file("paths.csv"),
    [header, ...both.map((row) => row.join(","))].join("\n"),
  );
  const species = [...new Set(cells.map((row) => row[3]))];
  const relevance = (a, b) =>
    a === b ? 1 : a % 4 === b % 4 ? 0.5 : a % 2 === b % 2 ? 0.2 : 0;
  const table = species.map((name, a) => [
    name,
    ...species.map((_, b) => relevance(a, b)),
  ]);
  writeFileSync(
    file("relevance.csv"),
    [["species", ...species], ...table].map((row) => row.join(",")).join("\n"),
  );
}

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
  const train = (name, recipe, sets, sampler = "sampler.classes_per_batch=8") =>
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
        sampler,
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
  writeKinship(folder);
  const withoutTree = {
    paths: ["data.path=data/paths.csv", "data.label_separator=;"],
    matrix: [
      "data.relevance_matrix=data/relevance.csv",
      "data.class_column=species",
      'data.levels=["relevance 0.2", "relevance 0.5", "relevance 1"]',
    ],
  };
  for (const [name, sets] of Object.entries(withoutTree)) {
    const sampler = 'sampler={kind="random", batch_size=16}';
    train(name, RECIPES.HAPPIER, [...sets, 'loss={kind="roadmap"}'], sampler);
    run("export", join("runs", name), "--out", name, "--title", name);
  }
  // An encoder that is an ONNX file, with a head of akin's own.
  train("ONNX", RECIPES.HAPPIER, [
    `model.backbone={kind="onnx", path="${ONNX}"}`,
    'model.pooling="average"',
    "model.freeze_backbone=true",
    "model.head={dimension=16}",
  ]);
  run(
    "export",
    "runs/ONNX",
    "--out",
    "onnx",
    "--title",
    "ONNX",
    "--licence",
    "CC0-1.0",
  );
  // Embeddings alone, as if another program had made them.
  run("embed", runs[0], "data/images", "--out", "others.npy");
  const labels = readFileSync(join(folder, "others.csv"), "utf8")
    .trim()
    .split("\n")
    .slice(1)
    .map((path) => [path, ...path.split("/").slice(2, 5)].join(","));
  const table = ["path,order,family,species", ...labels].join("\n");
  writeFileSync(join(folder, "others.csv"), table);
  const of = ["--embeddings", "others.npy", "--labels", "others.csv"];
  const levels = ["--levels", "order,family,species"];
  run("export", ...of, ...levels, "--out", "others", "--title", "Others");
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
