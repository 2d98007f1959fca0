// Measures encoders that are ONNX files in the page: what they take to be ready, what a picture takes, and the memory.
//
//   venv/bin/python tests/peers/onnx_models.py models
//   AKIN=… AKIN_PAGE=… AKIN_FIXTURE=… node tests/peers/onnx_page.mjs models [NAME…]
//
// The variables are those of tests/e2e/site.mjs. Each folder of `models` becomes a run on two dozen drawings, and the bundle
// of it is opened in headless Chromium on the engine for the CPU, in a browser of its own.
//
// - cold: from the click that accepts the download to the first own result. The page loads the file and ONNX Runtime from
//   this machine, prepares the network, and embeds the eight pictures of the parity check and the photo;
// - warm: from the choice of a photo to its results, the median of five;
// - memory: the largest that the process of the page took.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { PICTURES } from "../e2e/fixture.mjs";
import { akin, launch, serve, upload, waitForRankings } from "../e2e/site.mjs";

const [models, ...names] = process.argv.slice(2);
const PHOTOS = PICTURES.filter((path) => path.endsWith(".jpg"));
const work = mkdtempSync(join(tmpdir(), "akin-"));

const run = (...options) => execFileSync(akin, options, { cwd: work, stdio: ["ignore", "ignore", "inherit"] });

/** Writes the bundle of a network with a linear head of random numbers over its frozen features of two dozen drawings. */
function write(name) {
  const backbone = `{kind="onnx", path="${resolve(models, name, "model.onnx")}"}`;
  const settings = [
    `model.backbone=${backbone}`,
    "model.preprocessing=imagenet",
    "model.freeze_backbone=true",
    "model.head={dimension=64}",
    "sampler={kind='random', batch_size=8}",
    "run.steps=1",
  ];
  const sets = settings.flatMap((setting) => ["--set", setting]);
  run("train", "biomorphs-happier", "--out", `${name}.run`, "--progress", "none", ...sets);
  run("export", `${name}.run`, "--out", name, "--no-maps", "--progress", "none", "--licence", "CC0-1.0");
  return join(work, name);
}

/** The largest memory that a process of the page has taken, in bytes. */
async function peakMemory(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const peaks = processInfo
    .filter(({ type }) => type === "renderer")
    .map(({ id }) => 1024 * /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8"))[1]);
  return Math.max(...peaks);
}

async function measure(bundle) {
  const { address, stop } = await serve([bundle]);
  const browser = await launch("cpu");
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(300_000);
    await page.goto(address);
    const timed = async (path, begin) => {
      const name = `${Math.random()}.jpg`;
      const start = performance.now();
      await begin?.();
      await upload(page, name, readFileSync(path));
      await waitForRankings(page, `image:${name}`);
      return (performance.now() - start) / 1000;
    };
    await page.waitForSelector("[data-testid=offer]");
    const cold = await timed(PHOTOS[0], () => page.click("[data-testid=offer] button"));
    const warm = [];
    for (let i = 0; i < 5; i++) warm.push(await timed(PHOTOS[i % PHOTOS.length]));
    return { cold, warm: warm.sort((a, b) => a - b)[2], memory: await peakMemory(browser) };
  } finally {
    await browser.close();
    stop();
  }
}

try {
  run("biomorphs", "data", "--branching", "2,2,3", "--images-per-class", "2", "--side", "64", "--progress", "none");
  console.log("| network | file | cold | warm | memory |\n|---|--:|--:|--:|--:|");
  for (const name of names.length ? names : readdirSync(models).sort()) {
    const bytes = readFileSync(join(models, name, "model.onnx")).length;
    const { cold, warm, memory } = await measure(write(name));
    const cells = [`${(bytes / 1e6).toFixed(0)} MB`, `${cold.toFixed(1)} s`, `${warm.toFixed(2)} s`, `${(memory / 1e6).toFixed(0)} MB`];
    console.log(`| ${[name, ...cells].join(" | ")} |`);
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
