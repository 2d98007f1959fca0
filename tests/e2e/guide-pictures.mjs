// Makes the pictures of native-trainer/GUIDE.md: the dashboard, the dry run, the report, and a figure of a comparison.
// Usage:
//
//   AKIN=target/release/akin node tests/e2e/guide-pictures.mjs [FOLDER]
//
// FOLDER is native-trainer/docs by default. Everything is made from creatures that akin draws, so no data is needed. The
// training takes about a minute. Numbers of speed and time differ between machines, and so do the pictures.
//
// Environment: AKIN is the program. CHROMIUM is the browser (default: /usr/bin/chromium). `script` of util-linux gives
// the program a terminal.
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launchBrowser } from "./browser.mjs";
import { drawTerminal, record } from "./terminal-picture.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const akin = resolve(process.env.AKIN ?? join(root, "target/release/akin"));
const out = resolve(process.argv[2] ?? join(root, "native-trainer/docs"));
const TERMINAL = { columns: 96, rows: 26 };

/** The training of which the pictures are. */
const CONFIG = `
[run]
name = "creatures"
steps = 500
device = "cpu"
evaluate_every_epochs = 4
checkpoint_every_epochs = 4
best_by = "h_ap"

[data]
kind = "csv"
path = "data/labels.csv"
levels = ["order", "family", "species"]

[model]
backbone = { kind = "small_resnet", width = 16 }
head = { dimension = 32 }
preprocessing = { resize = 48, crop = 48, filter = "bilinear", channels = "rgb", scale = 0.004, mean = [0.5, 0.5, 0.5], deviation = [0.5, 0.5, 0.5] }

[loss]
kind = "happier"

[sampler]
classes_per_batch = 8
images_per_class = 4

[optimizer]
lr_backbone = 2e-3
lr_head = 2e-3

[compare]
losses = ["happier"]
seeds = [0, 1, 2]
columns = ["h_ap"]
vary = { "loss.lambda" = [0.1, 0.3, 0.5, 0.7, 0.9] }
`;

const folder = mkdtempSync(join(tmpdir(), "akin-guide-"));
const browser = await launchBrowser();
mkdirSync(out, { recursive: true });

const run = (...words) =>
  execFileSync(akin, words, {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });

/** Records `akin` on a terminal. */
function terminal(line) {
  const { status, bytes } = record(`"${akin}" ${line}`, {
    ...TERMINAL,
    folder,
  });
  if (status !== 0)
    throw new Error(`akin ${line} ended with ${status}:\n${bytes}`);
  return bytes;
}

/** The last whole picture of the dashboard before this share of a recording. */
function pictureAt(bytes, share) {
  const [START, END] = ["\x1b[?2026h", "\x1b[?2026l"];
  const start = bytes.lastIndexOf(START, Math.floor(bytes.length * share));
  return bytes.subarray(start, bytes.indexOf(END, start));
}

/** Draws what was written to a terminal, with a folder of a reader in place of ours. */
const drawText = (bytes, file) =>
  drawTerminal(
    browser,
    Buffer.from(bytes.toString().replaceAll(folder, "/home/reader")),
    join(out, file),
    { columns: TERMINAL.columns },
  );

/** Takes a picture of the part of a page from the top of one element to the bottom of another. */
async function drawPage(file, name, width, [first, last]) {
  const page = await browser.newPage({
    viewport: { width, height: 1000 },
    colorScheme: "light",
  });
  await page.goto(pathToFileURL(file).href);
  const [top, bottom] = await page.evaluate(
    ([first, last]) => [
      document.querySelector(first).getBoundingClientRect().top,
      document.querySelector(last).getBoundingClientRect().bottom,
    ],
    [first, last],
  );
  const clip = { x: 0, y: Math.max(top - 24, 0), width };
  await page.screenshot({
    path: join(out, name),
    fullPage: true,
    clip: { ...clip, height: bottom + 24 - clip.y },
    ...(name.endsWith(".jpg") && { type: "jpeg", quality: 82 }),
  });
  await page.close();
}

try {
  writeFileSync(join(folder, "creatures.toml"), CONFIG);
  run(
    "biomorphs",
    "data",
    "--branching",
    "4,3,4",
    "--images-per-class",
    "12",
    "--side",
    "64",
  );
  await drawText(
    terminal("train creatures.toml --dry-run --sheet batch.png"),
    "dry-run.png",
  );
  writeFileSync(
    join(folder, "batch.html"),
    "<body style='margin: 0'><img src=batch.png width=100% style='display: block'>",
  );
  await drawPage(join(folder, "batch.html"), "first-batch.jpg", 900, [
    "img",
    "img",
  ]);
  const training = terminal("train creatures.toml --out runs/creatures");
  await drawText(pictureAt(training, 0.72), "dashboard.png");
  run("report", "runs/creatures", "--queries", "2");
  const report = join(folder, "report.html");
  await drawPage(report, "report.png", 900, ["h1", "#loss figcaption"]);
  await drawPage(report, "worst-queries.jpg", 900, [
    "#worst",
    "#worst figcaption",
  ]);
  // A smaller network and fewer steps, because there are fifteen trainings.
  const short = ["run.steps=120", "model.backbone.width=4"];
  run(
    "compare",
    "creatures.toml",
    "--out",
    "compare",
    ...short.flatMap((set) => ["--set", set]),
  );
  copyFileSync(
    join(folder, "compare/figures/loss-lambda-h-ap.svg"),
    join(out, "sensitivity.svg"),
  );
  for (const name of readdirSync(out))
    console.log(
      `${join(out, name)}  ${Math.ceil(statSync(join(out, name)).size / 1000)} kB`,
    );
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
