// Measures the page beside ONNX Runtime Web, with the same network and the same pictures, in headless Chromium on one
// thread.
//
//   AKIN=… AKIN_PAGE=… AKIN_FIXTURE=… node tests/peers/page.mjs [ROUNDS [BACKBONE [SIDE]]]
//
// The variables are those of tests/e2e/site.mjs. The network is SqueezeNet 1.1 at 128 pixels, or another backbone that reads
// pictures as torchvision's do, with a linear head and random weights, as a bundle of akin and as an ONNX file. The page of
// ONNX Runtime decodes pictures with the browser and writes a list of names; it has nothing else. Both take turns:
//
// - picture: decoding a JPEG and resizing it;
// - network: from there to the embedding. That of akin includes the resizing, and its decoding does not;
// - results: from the choice of a file to the list of the nearest items;
// - cold: the same with an empty cache, from the address of the page.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { basename, join } from "node:path";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { akin, launch, pageFolder, serve, upload } from "../e2e/site.mjs";

const [rounds = "30", BACKBONE = "squeezenet", SIDE = "128"] = process.argv.slice(2);
const ROUNDS = Number(rounds);
const COLD_ROUNDS = 5;
const runtime = fileURLToPath(new URL("../../www/node_modules/onnxruntime-web/dist/", import.meta.url));
const work = mkdtempSync(join(tmpdir(), "akin-"));
const run = (...options) => execFileSync(akin, options, { cwd: work, stdio: ["ignore", "ignore", "inherit"] });

/** The page of ONNX Runtime. */
const PEER = `<!doctype html><meta charset="utf-8"><title>ONNX Runtime Web</title><link rel="icon" href="data:,">
<input type="file" data-testid="file"><ol></ol>
<script type="module">
import * as ort from "/ort.wasm.min.mjs";
ort.env.wasm.numThreads = 1;
const [mean, deviation] = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]];
const session = ort.InferenceSession.create("/model.onnx");
const gallery = fetch("/gallery.f32").then(async (answer) => new Float32Array(await answer.arrayBuffer()));
const canvas = new OffscreenCanvas(${SIDE}, ${SIDE}).getContext("2d", { willReadFrequently: true });

async function picture(file) {
  // The pictures are wider than high.
  const bitmap = await createImageBitmap(file, { resizeHeight: ${SIDE}, resizeQuality: "medium" });
  canvas.drawImage(bitmap, Math.round((${SIDE} - bitmap.width) / 2), 0);
  const { data } = canvas.getImageData(0, 0, ${SIDE}, ${SIDE});
  const numbers = new Float32Array(3 * ${SIDE} * ${SIDE});
  for (let plane = 0; plane < 3; plane++)
    for (let i = 0; i < ${SIDE} * ${SIDE}; i++)
      numbers[plane * ${SIDE} * ${SIDE} + i] = (data[4 * i + plane] / 255 - mean[plane]) / deviation[plane];
  return new ort.Tensor("float32", numbers, [1, 3, ${SIDE}, ${SIDE}]);
}

async function network(images) {
  const { embeddings } = await (await session).run({ images });
  return embeddings.data;
}

window.parts = async (file) => {
  const start = performance.now();
  const images = await picture(file);
  const middle = performance.now();
  await network(images);
  return [middle - start, performance.now() - middle];
};

document.querySelector("input").onchange = async ({ target }) => {
  const query = await network(await picture(target.files[0]));
  const items = await gallery;
  const score = (item) => query.reduce((sum, x, i) => sum + x * items[item * query.length + i], 0);
  const ranked = Array.from({ length: items.length / query.length }, (_, item) => [score(item), item]);
  ranked.sort(([a], [b]) => b - a);
  const list = ranked.slice(0, 50).map(([score, item]) => {
    const entry = document.createElement("li");
    entry.textContent = "item " + item + ", " + score.toFixed(3);
    return entry;
  });
  document.querySelector("ol").replaceChildren(...list);
  document.querySelector("ol").dataset.query = target.files[0].name;
};
</script>`;

/** Serves the page of ONNX Runtime with a network and a gallery. */
async function servePeer(files) {
  const types = { mjs: "text/javascript", wasm: "application/wasm", html: "text/html" };
  const server = createServer(({ url }, answer) => {
    const name = basename(url) || "index.html";
    const body = name === "index.html" ? PEER : readFileSync(files[name] ?? join(runtime, name));
    answer.writeHead(200, { "content-type": types[name.split(".").pop()] ?? "application/octet-stream" }).end(body);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { address: `http://127.0.0.1:${server.address().port}/`, stop: () => server.close() };
}

/** A JPEG of circles and noise, which the browser draws and encodes. */
const draw = (page, width, height) =>
  page.evaluate(
    async ([width, height]) => {
      const canvas = new OffscreenCanvas(width, height);
      const context = canvas.getContext("2d");
      for (let i = 0; i < 400; i++) {
        context.fillStyle = `hsl(${(i * 137) % 360} 60% ${20 + ((i * 31) % 60)}%)`;
        context.beginPath();
        context.arc((i * 7919) % width, (i * 104729) % height, (1 + (i % 7)) * (width / 40), 0, 7);
        context.fill();
      }
      const image = context.getImageData(0, 0, width, height);
      let state = 1;
      for (let i = 0; i < image.data.length; i++) {
        state = (state * 1103515245 + 12345) % 2147483648;
        if (i % 4 < 3) image.data[i] += (state >> 16) % 16;
      }
      context.putImageData(image, 0, 0);
      const blob = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.85 });
      return Array.from(new Uint8Array(await blob.arrayBuffer()));
    },
    [width, height],
  );

/** The milliseconds that decoding and the network take in the engine of akin. */
const akinParts = (page, photo) =>
  page.evaluate(async (photo) => {
    const { decode_ms, embed_ms } = await window.engine.embed(0, new Uint8Array(photo));
    return [decode_ms, embed_ms];
  }, photo);

const peerParts = (page, photo) =>
  page.evaluate((photo) => window.parts(new Blob([new Uint8Array(photo)])), photo);

/** Opens the engine of akin's page in the page itself. */
const openEngine = (page) =>
  page.evaluate(async () => {
    const bytes = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer());
    const module = await import(new URL("akin-web.js", location).href);
    await module.default({ module_or_path: new URL("akin-web_bg.wasm", location) });
    const engine = await module.Engine.create("cpu", () => {});
    const manifest = await bytes("bundle/bundle.json");
    engine.open(manifest);
    engine.load_labels(await bytes("bundle/labels.bin"));
    const [encoder] = JSON.parse(new TextDecoder().decode(manifest)).encoders;
    const [weights, gallery] = [encoder.weights, encoder.gallery_embeddings].map((path) => bytes(`bundle/${path}`));
    engine.load_encoder(0, await weights, await gallery);
    window.engine = engine;
  });

let pictures = 0;

/** The milliseconds from the choice of a file to its results, as the page's own clock counts them. */
async function toResults(page, photo, results) {
  const name = `${pictures++}.jpg`;
  await page.evaluate((selector) => {
    const begin = () => {
      const start = performance.now();
      const observer = new MutationObserver(() => {
        if (!document.querySelector(selector)) return;
        observer.disconnect();
        window.time = performance.now() - start;
      });
      observer.observe(document, { subtree: true, childList: true, attributes: true });
    };
    window.time = null;
    document.addEventListener("change", begin, { capture: true, once: true });
  }, results(name));
  await upload(page, name, Buffer.from(photo));
  return (await page.waitForFunction(() => window.time)).jsonValue();
}

const akinResults = (name) => `[data-testid=ranking][data-query="image:${name}"][aria-busy=false]`;
const peerResults = (name) => `[data-query="${name}"]`;

/** Opens a page. That of akin offers a large bundle before it loads it. */
async function open(browser, address) {
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(address);
  const accept = await page.waitForSelector("[data-testid=offer] button, [data-testid=ranking][aria-busy=false], body > ol", {
    state: "attached",
  });
  if ((await accept.evaluate(({ tagName }) => tagName)) === "BUTTON") await accept.click();
  return page;
}

/** The milliseconds from the address of a page to the first results, in a browser without a cache. */
async function cold(address, photo, results) {
  const browser = await launch("cpu");
  try {
    const start = performance.now();
    const page = await open(browser, address);
    await toResults(page, photo, results);
    return performance.now() - start;
  } finally {
    await browser.close();
  }
}

const summary = (times) => {
  const sorted = times.toSorted((a, b) => a - b);
  return `${sorted[0].toFixed(1)} / ${sorted[sorted.length >> 1].toFixed(1)} ms`;
};
const row = (name, ours, theirs) => console.log(`| ${name} | ${summary(ours)} | ${summary(theirs)} |`);

try {
  run("biomorphs", "data", "--branching", "2,2,3", "--images-per-class", "2", "--side", "64", "--progress", "none");
  const settings = [
    `model.backbone={kind='${BACKBONE}'}`,
    `model.preprocessing={name='imagenet', crop=${SIDE}}`,
    "model.freeze_backbone=true",
    "model.head={dimension=64}",
    "sampler={kind='random', batch_size=8}",
    "run.steps=1",
  ].flatMap((setting) => ["--set", setting]);
  run("train", "biomorphs-happier", "--out", "run", "--progress", "none", ...settings);
  run("export", "run", "--out", "bundle", "--no-maps", "--progress", "none", "--licence", "CC0-1.0");
  run("export", "run", "--to", "onnx", "--out", "onnx", "--progress", "none");
  const { encoders } = JSON.parse(readFileSync(join(work, "bundle/bundle.json")));
  const ours = await serve([join(work, "bundle")]);
  const theirs = await servePeer({
    "model.onnx": join(work, "onnx/model.onnx"),
    "gallery.f32": join(work, "bundle", encoders[0].gallery_embeddings),
  });
  const browser = await launch("cpu");
  console.log(`${BACKBONE} at ${SIDE} pixels; best / median of ${ROUNDS}, cold of ${COLD_ROUNDS}; the page of ${pageFolder}`);
  console.log("| work | akin | ONNX Runtime Web |\n|---|--:|--:|");
  try {
    const [akinPage, peerPage] = [await open(browser, ours.address), await open(browser, theirs.address)];
    await openEngine(akinPage);
    let first;
    for (const [width, height] of [
      [1024, 768],
      [4000, 3000],
    ]) {
      const photo = await draw(peerPage, width, height);
      first ??= photo;
      const name = `a JPEG of ${width} × ${height}`;
      const times = Array.from({ length: 6 }, () => []);
      for (let round = -1; round < ROUNDS; round++) {
        const measured = [
          ...(await akinParts(akinPage, photo)),
          await toResults(akinPage, photo, akinResults),
          ...(await peerParts(peerPage, photo)),
          await toResults(peerPage, photo, peerResults),
        ];
        if (round >= 0) measured.forEach((time, i) => times[i].push(time));
      }
      row(`${name}: picture`, times[0], times[3]);
      row(`${name}: network`, times[1], times[4]);
      row(`${name}: results`, times[2], times[5]);
    }
    const colds = [[], []];
    for (let round = 0; round < COLD_ROUNDS; round++) {
      colds[0].push(await cold(ours.address, first, akinResults));
      colds[1].push(await cold(theirs.address, first, peerResults));
    }
    row("cold", ...colds);
  } finally {
    await browser.close();
    ours.stop();
    theirs.stop();
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
