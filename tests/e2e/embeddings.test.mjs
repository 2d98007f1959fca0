// A gallery of embeddings alone, which another program made: everything but pictures of the reader's own.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PICTURES } from "./fixture.mjs";
import {
  axeProblems,
  fixture,
  openSite,
  waitForNotice,
  waitForRankings,
} from "./site.mjs";

const others = fixture("others");
const manifest = JSON.parse(readFileSync(join(others, "bundle.json"), "utf8"));
const [encoder] = manifest.encoders;
const numbers = new Float32Array(
  readFileSync(join(others, encoder.gallery_embeddings)).slice().buffer,
);

/** The ten items nearest to an item by the cosine, nearest first. */
function nearest(query) {
  const { dimension } = encoder;
  const row = (item) =>
    numbers.subarray(item * dimension, (item + 1) * dimension);
  const dot = (a, b) =>
    a.reduce((sum, value, index) => sum + value * b[index], 0);
  const cosine = (item) =>
    dot(row(query), row(item)) /
    Math.sqrt(dot(row(query), row(query)) * dot(row(item), row(item)));
  return Array.from({ length: manifest.gallery.count }, (_, item) => item)
    .filter((item) => item !== query)
    .sort((a, b) => cosine(b) - cosine(a) || a - b)
    .slice(0, 10);
}

const { visit } = await openSite("cpu", [], [others, fixture("bundle")]);

test("an item of the gallery finds its nearest items", () =>
  visit({ query: "?q=5" }, async (page) => {
    await waitForRankings(page, "item:5");
    const results = await page.$$eval("[data-testid=results] > li", (items) =>
      items.slice(0, 10).map(({ dataset }) => Number(dataset.item)),
    );
    assert.deepEqual(results, nearest(5));
    assert.equal(await page.locator("[data-look-item]").count(), 0);
    assert.equal(await page.locator("[data-testid=parity]").count(), 0);
    assert.deepEqual(await axeProblems(page), []);
  }));

test("the page says why it takes no picture, and refuses one that is dropped", () =>
  visit({ query: "?q=5" }, async (page) => {
    assert.match(
      await page.innerText("akin-file"),
      /This gallery has no encoder/,
    );
    assert.equal(await page.locator("[data-testid=file]").count(), 0);
    const bytes = [...readFileSync(PICTURES[0])];
    await page.evaluate((bytes) => {
      const dataTransfer = new DataTransfer();
      const file = new File([Uint8Array.from(bytes)], "a.jpg", {
        type: "image/jpeg",
      });
      dataTransfer.items.add(file);
      for (const type of ["dragenter", "dragover", "drop"])
        document.body.dispatchEvent(
          new DragEvent(type, {
            dataTransfer,
            bubbles: true,
            cancelable: true,
          }),
        );
    }, bytes);
    const notice = await waitForNotice(page);
    assert.equal(notice.code, "encoder");
    assert.match(
      notice.text,
      /holds the embeddings others, but not the encoder/,
    );
  }));

test("its map, its playground and its metrics are there", () =>
  visit({ query: "?view=map", wait: false }, async (page) => {
    await page.waitForSelector("[data-testid=map][data-visible]");
    await page.goto(page.url().replace(/\?.*/, "?view=playground"));
    await page.waitForSelector("akin-playground [data-item]");
    await page.goto(page.url().replace(/\?.*/, "?q=5"));
    await waitForRankings(page, "item:5");
    const hAp = page.locator("[data-metric=h_ap]").first();
    assert.ok(Number(await hAp.getAttribute("data-value")) > 0);
    assert.match(
      await page.textContent("[data-testid=model-card]"),
      /Embeddings from others\.npy/,
    );
  }));
