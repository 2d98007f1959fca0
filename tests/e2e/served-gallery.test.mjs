// A gallery of one's own photos from the first command to the page, as the guide says it: made, changed, searched, served.
// The photos are thumbnails of the groceries that come with akin, and so is the encoder: a SqueezeNet.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  akin,
  axeProblems,
  launch,
  openSite,
  serve,
  upload,
  waitForNotice,
  waitForRankings,
} from "./site.mjs";

const folder = mkdtempSync(join(tmpdir(), "akin-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const photos = join(folder, "photos");
const gallery = join(folder, "pictures.gallery");
const run = (...options) =>
  execFileSync(akin, options, {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
const search = (...options) =>
  JSON.parse(run("search", gallery, ...options, "--json")).items;
const items = (found) => found.map(({ item }) => item);

const model = fileURLToPath(
  new URL("../../www/galleries/groceries", import.meta.url),
);

/** Every tenth photo of the gallery of groceries, cut from its sheets: its folders from its labels, and its bytes. */
async function groceries() {
  const { gallery, thumbnails, taxonomy } = JSON.parse(
    readFileSync(join(model, "bundle.json")),
  );
  const { buffer, byteOffset } = readFileSync(join(model, "labels.bin"));
  const depth = taxonomy.levels.length;
  const labels = new Uint32Array(buffer.slice(byteOffset));
  const browser = await launch("cpu");
  const page = await browser.newPage();
  const photos = [];
  for (let item = 0; item < gallery.count; item += 10) {
    const { columns, rows, tile, sheets } = thumbnails;
    const place = item % (columns * rows);
    const sheet = readFileSync(
      join(model, sheets[Math.floor(item / (columns * rows))]),
    );
    const png = await page.evaluate(
      async ([sheet, x, y, tile]) => {
        const image = new Image();
        image.src = `data:image/jpeg;base64,${sheet}`;
        await image.decode();
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = tile;
        canvas.getContext("2d").drawImage(image, -x, -y);
        return canvas.toDataURL("image/png").split(",")[1];
      },
      [
        sheet.toString("base64"),
        (place % columns) * tile,
        Math.floor(place / columns) * tile,
        tile,
      ],
    );
    const path = taxonomy.classes.map(
      (names, level) => names[labels[item * depth + level]],
    );
    photos.push({ path: [...path, `${item}.png`], bytes: png });
  }
  await browser.close();
  return photos;
}

for (const { path, bytes } of await groceries()) {
  const file = join(photos, ...path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, bytes, "base64");
}
const files = readdirSync(photos, { recursive: true })
  .filter((file) => file.endsWith(".png"))
  .sort();
const [kept, removed, added] = [files[0], files[20], files[40]].map((file) =>
  join(photos, file),
);

// Made without a picture that comes later.
const later = readFileSync(added);
rmSync(added);
run(
  "index",
  model,
  photos,
  "--out",
  gallery,
  "--levels",
  "department,kind,variety",
);

const count = () => search("--near", "0", "-k", "1000").length + 1;
const counts = [count()];
const [ofItself] = search(kept, "-k", "1");
run("index", gallery, "--remove", removed);
counts.push(count());
writeFileSync(added, later);
run("index", gallery, "--add", photos);
counts.push(count());
rmSync(removed);
run("index", gallery, "--refresh");
counts.push(count());

const { visit, address } = await openSite("cpu", [], [gallery]);

// A server whose page holds 12 pictures of the same gallery.
const SAMPLE = 12;
const larger = join(folder, "larger.gallery");
cpSync(gallery, larger, { recursive: true });
const server = await serve([larger], ["--page-pictures", String(SAMPLE)]);
after(() => server.stop());
const { visit: visitLarger } = await openSite("cpu", [], [], server.address);

test("a gallery follows its folder, and a picture finds itself", () => {
  const all = files.length;
  assert.deepEqual(counts, [all - 1, all - 2, all, all - 1]);
  assert.equal(ofItself.path, resolve(kept));
  const [{ path, score }] = search(added, "-k", "1");
  assert.equal(path, resolve(added));
  assert.ok(score > 0.9999, `the cosine is ${score}`);
});

test("the page and programs find in a served gallery what the search finds", async () => {
  const expected = items(search(added, "-k", "10"));
  const ask = (path, options) => fetch(new URL(path, address), options);
  const answer = await ask("search?count=10", {
    method: "POST",
    headers: { "Content-Type": "image/png" },
    body: later,
  });
  assert.equal(answer.status, 200);
  const found = (await answer.json()).items;
  assert.deepEqual(items(found), expected);
  assert.ok(found.every(({ path, thumbnail }) => !path && thumbnail));
  const thumbnail = await ask(found[0].thumbnail);
  assert.equal(thumbnail.headers.get("content-type"), "image/jpeg");

  await visit({ query: "?q=0" }, async (page, requests) => {
    await waitForRankings(page, "item:0");
    await upload(page, "added.png", later);
    await waitForRankings(page, "image:added.png");
    const shown = await page.$$eval("[data-testid=results] > li", (found) =>
      found.slice(0, 10).map(({ dataset }) => Number(dataset.item)),
    );
    // The weights of the page have half precision.
    assert.equal(shown[0], expected[0]);
    assert.ok(
      shown.filter((item) => expected.includes(item)).length >= 8,
      `${shown}, but ${expected}`,
    );
    assert.ok(
      !requests.some((url) => new URL(url).pathname === "/search"),
      "the page embeds by itself",
    );
  });
});

test("the page holds a sample of a larger gallery, and its server searches with embeddings", async () => {
  const expected = search(added, "-k", "100");
  const read = async (path) =>
    (await fetch(new URL(path, server.address))).json();
  assert.equal((await read("bundles.json")).bundles[0].sample, true);
  const { items: count } = await read("gallery");

  await visitLarger({ query: "?q=3" }, async (page, requests) => {
    const sent = [];
    page.on("request", (request) => sent.push(request.postData() ?? ""));
    const shown = () =>
      page.$$eval("[data-testid=results] > li", (found) =>
        found.map(({ dataset }) => ({
          item: Number(dataset.item),
          score: Number(dataset.score),
        })),
      );
    const header = await page.textContent("[data-testid=served]");
    assert.match(header, new RegExp(`sample of\\s+${SAMPLE} pictures`));
    assert.match(
      await page.textContent(".bundle"),
      new RegExp(`${count} pictures`),
    );
    assert.ok((await shown()).some(({ item }) => item >= SAMPLE));

    await upload(page, "added.png", later);
    await waitForRankings(page, "image:added.png");
    const found = await shown();
    // The weights of the page have half precision.
    for (const [place, { score }] of found.slice(0, 10).entries())
      assert.ok(Math.abs(score - expected[place].score) < 0.01, `${place}`);
    const [{ embedding }] = sent.filter((body) => body).map(JSON.parse);
    assert.equal(embedding.length, 128);
    assert.ok(
      sent.every((body) => body.length < 100 * embedding.length),
      "more than an embedding is sent",
    );
    assert.ok(await page.$("[data-testid=votes]"));

    // The thumbnails of other items come from the server.
    const other = found.find(({ item }) => item >= SAMPLE);
    const thumbnail = (address) => /items\/(\d+)\/thumbnail/.exec(address)?.[1];
    await page.waitForFunction(
      () => !document.querySelector("akin-thumb[data-failed]"),
    );
    const drawn = requests.flatMap((address) => thumbnail(address) ?? []);
    assert.ok(drawn.length > 0);

    // One of them becomes the query. It has no place in an address, because its number may change.
    await page.click(`[data-query-item="${other.item}"]`);
    await waitForRankings(page, `item:${other.item}`);
    assert.ok((await shown()).every(({ item }) => item !== other.item));
    // The address follows after a pause.
    await page.waitForFunction(() => !/[?&]q=/.test(location.search));

    const option = "[data-filter='1'] option:nth-child(2)";
    const department = (await page.textContent(option)).trim();
    await page.selectOption("[data-filter='1']", { label: department });
    const { all } = await read(`items?within=${department}&count=1`);
    const itself = (await page.textContent("[data-testid=query]")).includes(
      department,
    );
    await page.waitForFunction(
      (expected) =>
        document.querySelectorAll("[data-testid=results] > li").length ===
        expected,
      Math.min(24, all - Number(itself)),
    );
  });

  await visitLarger({ query: "?view=map", wait: false }, (page) =>
    page.waitForSelector("[data-testid=sample]"),
  );
});

test("photos without labels are searched and shown, too", async () => {
  const flat = join(folder, "flat");
  mkdirSync(flat);
  for (const file of files.slice(50, 80))
    cpSync(join(photos, file), join(flat, file.split("/").at(-1)));
  run("index", model, flat, "--out", join(folder, "flat.gallery"));
  const { address, stop } = await serve([join(folder, "flat.gallery")]);
  after(stop);
  const { visit } = await openSite("cpu", [], [], address);
  await visit({ query: "?q=7" }, async (page) => {
    assert.match(
      await page.textContent(".bundle"),
      /30 pictures, without labels/,
    );
    await upload(page, "mine.png", later);
    await waitForRankings(page, "image:mine.png");
    const names = await page.$$eval("[data-testid=results] > li", (found) =>
      found.map(({ innerText }) => innerText),
    );
    assert.ok(names.length === 24 && /Picture \d+/.test(names[0]), names[0]);
    for (const part of ["votes", "class-filter", "report", "no-calibration"])
      assert.equal(await page.$(`[data-testid=${part}]`), null, part);
    assert.deepEqual(await axeProblems(page), []);
  });
});

test("a picture that left the gallery, and a server that has ended, are said", async () => {
  await visitLarger({ query: "?q=1" }, async (page) => {
    const { path } = search("--near", "1", "-k", "100").find(
      ({ item }) => item === 0,
    );
    run("index", larger, "--remove", path);
    const { items: before } = JSON.parse(
      await (await fetch(new URL("gallery", server.address))).text(),
    );
    for (;;) {
      const answer = await fetch(new URL("gallery", server.address));
      if ((await answer.json()).items < before) break;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    // The first picture of the sample is the first of the gallery.
    await page.click("akin-samples [data-item='0']");
    const { text } = await waitForNotice(page);
    assert.match(text, /no longer in the gallery/);
    server.stop();
    await page.click("akin-samples [data-item='1']");
    await page.waitForFunction(() =>
      document
        .querySelector("[data-testid=notice]")
        ?.textContent.includes("does not answer"),
    );
  });
});
