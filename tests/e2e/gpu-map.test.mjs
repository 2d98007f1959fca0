// The map drawn by the engine's graphics device shows the same as the map drawn on a 2-D canvas.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { keepDevice, openSite, WEBGPU_CANVAS } from "./site.mjs";

const { visit } = await openSite("webgpu", WEBGPU_CANVAS);

/** Waits until the map shows its present state. */
async function waitForMap(page, drawing) {
  await page.waitForSelector("[data-testid=map][data-drawn]");
  await page.evaluate(async () => {
    await document.querySelector("akin-map").updateComplete;
    // A change is painted in the next frame.
    for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
  });
  await page.waitForSelector(
    `[data-testid=map][data-drawing=${drawing}][data-drawn=true]`,
  );
}

/** The mean colours of squares of 8 pixels of a picture (PNG), row by row. */
const squares = (page, png) =>
  page.evaluate(
    async (bytes) => {
      const image = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
      const columns = Math.floor(image.width / 8);
      const rows = Math.floor(image.height / 8);
      const canvas = new OffscreenCanvas(columns * 8, rows * 8);
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
      const sums = Array.from({ length: columns * rows }, () => [0, 0, 0]);
      for (let pixel = 0; pixel < data.length / 4; pixel++) {
        const row = Math.floor(pixel / canvas.width / 8);
        const column = Math.floor((pixel % canvas.width) / 8);
        const sum = sums[row * columns + column];
        for (const part of [0, 1, 2]) sum[part] += data[4 * pixel + part] / 64;
      }
      return sums;
    },
    [...png],
  );

const apart = (a, b) =>
  Math.max(...a.map((part, at) => Math.abs(part - b[at])));

/** The share of squares that differ, among those that are not of the colour of the paper in both pictures. */
function difference(first, second) {
  assert.equal(first.length, second.length);
  const [paper] = first;
  const pairs = first
    .map((square, at) => [square, second[at]])
    .filter((pair) => pair.some((square) => apart(square, paper) > 12));
  assert.ok(pairs.length > 50, `only ${pairs.length} squares show something`);
  return pairs.filter(([a, b]) => apart(a, b) > 32).length / pairs.length;
}

const stage = async (page) =>
  squares(page, await page.locator("akin-map .stage").screenshot());

/** The picture that the device draws, and that of the 2-D canvas for the same map. */
async function both(page) {
  await waitForMap(page, "webgpu");
  const gpu = await stage(page);
  await page.evaluate(() =>
    document.querySelector("akin-map").drawWithoutGpu(),
  );
  await waitForMap(page, "canvas");
  const canvas = await stage(page);
  await page.evaluate(() => {
    const map = document.querySelector("akin-map");
    map.gpuHasFailed = false;
    map.followEngine();
  });
  return { gpu, canvas };
}

test("WebGPU and the 2-D canvas show the same marks, links, faded classes, pictures and disk", (t) =>
  visit(
    { query: "?view=map&backend=webgpu&q=0&class=1.0&colour=3", wait: false },
    async (page) => {
      const compare = async (what) => {
        const { gpu, canvas } = await both(page);
        const share = difference(gpu, canvas);
        t.diagnostic(
          `${what}: ${(100 * share).toFixed(1)} % of squares differ`,
        );
        assert.ok(share < 0.03, `${what}: ${share}`);
        return gpu;
      };
      await page.waitForSelector("[data-testid=nearest] li[data-item]");
      const faded = await compare("a class");
      await page.click("[data-testid=clear-choice]");
      const all = await compare("all classes");
      // Another picture would be noticed.
      assert.ok(difference(faded, all) > 0.1);

      await page.evaluate(() => {
        const map = document.querySelector("akin-map");
        map.navigation.move({
          ...map.navigation.view,
          zoom: 6,
          centre: [...map.points.slice(0, 2)],
        });
      });
      await page.waitForSelector("[data-testid=map][data-pictures=true]");
      // The pictures of all items have come.
      await page.waitForFunction(() => {
        const map = document.querySelector("akin-map");
        const items = [...map.dress.markOf.keys()];
        return items.every((item) => map.scene().picture(item) !== null);
      });
      await compare("pictures");

      // The bundle of the tests has no hyperbolic encoder, so its plane is bent into a disk.
      await page.evaluate(() => {
        const map = document.querySelector("akin-map");
        const far = Math.max(...map.points.map(Math.abs));
        map.points = map.points.map((part) => (0.69 * part) / far);
        map.navigation.space =
          document.createElement("akin-map").navigation.space;
        map.navigation.move({
          ...map.navigation.view,
          zoom: 1.1,
          centre: [0.4, -0.3],
        });
        return map.updateComplete;
      });
      await compare("a disk");
    },
  ));

test("a lost device leaves the map to the 2-D canvas, which shows the same", () =>
  visit(
    {
      query: "?view=map&backend=webgpu&class=1.0",
      wait: false,
      before: keepDevice,
    },
    async (page) => {
      await waitForMap(page, "webgpu");
      const before = await stage(page);
      await page.workers()[0].evaluate(() => self.akinDevice.destroy());
      await waitForMap(page, "canvas");
      const share = difference(before, await stage(page));
      assert.ok(share < 0.05, `${share}`);
    },
  ));

test("a software adapter computes, but leaves the map to the 2-D canvas unless the reader has chosen WebGPU", () =>
  visit({ query: "?view=map", wait: false }, async (page) => {
    await waitForMap(page, "canvas");
    assert.equal(await page.locator("akin-map .ground").count(), 0);
  }));

test("a saved map has what the graphics device drew", () =>
  visit(
    { query: "?view=map&backend=webgpu&class=1.0", wait: false },
    async (page) => {
      await waitForMap(page, "webgpu");
      const shown = await squares(
        page,
        await page.locator("akin-map .stage").screenshot(),
      );
      const download = page.waitForEvent("download");
      await page
        .locator("akin-map .save-chart button", { hasText: "PNG" })
        .click();
      const saved = await squares(
        page,
        readFileSync(await (await download).path()),
      );
      // The picture of the stage has its border, too, so the squares lie apart: their number of colours is compared.
      const coloured = (all) =>
        all.filter((square) => apart(square, all[all.length - 1]) > 12).length;
      const ratio = coloured(saved) / coloured(shown);
      assert.ok(ratio > 0.9 && ratio < 1.1, `${ratio}`);
    },
  ));
