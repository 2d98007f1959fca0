// A photo from the camera is a query like any other picture, and the results can be copied.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axeProblems, bundle, openSite, waitForRankings } from "./site.mjs";

// Chromium's own moving picture stands for a camera. Without the second flag it refuses in headless mode.
const { visit } = await openSite("cpu", [
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
]);
const [first, second] = bundle.encoders.map(({ name }) => name);

const live = () => globalThis.akinStreams.some((stream) => stream.active);

/** Remembers the streams that the page opens. */
const watchStreams = (context) =>
  context.addInitScript(() => {
    globalThis.akinStreams = [];
    const open = navigator.mediaDevices.getUserMedia.bind(
      navigator.mediaDevices,
    );
    navigator.mediaDevices.getUserMedia = async (wanted) => {
      const stream = await open(wanted);
      globalThis.akinStreams.push(stream);
      return stream;
    };
  });

test("a photo is taken by keyboard, and the camera stops", () =>
  visit({ before: watchStreams }, async (page) => {
    await page.focus("[data-testid=take-photo]");
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      () => document.querySelector(".camera video")?.videoWidth > 0,
    );
    assert.equal(await page.evaluate(live), true);
    assert.deepEqual(await axeProblems(page), []);
    assert.equal(
      await page.evaluate(() => document.activeElement.dataset.testid),
      "shutter",
    );
    await page.keyboard.press("Enter");
    await waitForRankings(page, "image:photo.jpg");
    assert.equal(await page.evaluate(live), false);
    assert.equal(await page.$("dialog"), null);
  }));

test("the camera stops when the reader closes the dialog", () =>
  visit({ before: watchStreams }, async (page) => {
    await page.click("[data-testid=take-photo]");
    await page.waitForSelector("[data-testid=shutter]");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelector("dialog") === null);
    assert.equal(await page.evaluate(live), false);
    assert.equal(
      await page.evaluate(() => document.activeElement.dataset.testid),
      "take-photo",
    );
  }));

for (const [what, error, message] of [
  [
    "a refused permission",
    "NotAllowedError",
    /may not use the camera[^]*choose a file/,
  ],
  ["a missing camera", "NotFoundError", /finds no camera[^]*Choose a file/],
  [
    "a camera in use",
    "NotReadableError",
    /does not start[^]*Close other programs/,
  ],
]) {
  test(`the page explains ${what}`, () =>
    visit(
      {
        before: (context) =>
          context.addInitScript((error) => {
            navigator.mediaDevices.getUserMedia = () =>
              Promise.reject(new DOMException("", error));
          }, error),
      },
      async (page) => {
        await page.click("[data-testid=take-photo]");
        const notice = await page.waitForSelector(
          "dialog [data-testid=notice]",
        );
        assert.equal(await notice.getAttribute("data-code"), "camera");
        assert.match(await notice.innerText(), message);
        assert.deepEqual(await axeProblems(page), []);
        await page.click("dialog [data-testid=close]");
        // The answer is as it was.
        assert.ok((await page.$$("[data-testid=results] li")).length > 0);
      },
    ));
}

test("rankings and scores can be copied as JSON, CSV and LaTeX", () =>
  visit({ query: `?encoder=${first}&compare=${second}&q=5` }, async (page) => {
    await waitForRankings(page, "item:5", 2);
    await page
      .context()
      .grantPermissions(["clipboard-read", "clipboard-write"]);
    const copied = async (format) => {
      await page.click(`[data-copy=${format}]`);
      await page.waitForFunction(
        () =>
          document.querySelector("[data-testid=copy] [role=status]")
            .textContent !== "",
      );
      return page.evaluate(() => navigator.clipboard.readText());
    };
    const shown = await page.$$eval("[data-testid=results] li", (all) =>
      all.map(({ dataset }) => Number(dataset.item)),
    );
    const { rankings, levels } = JSON.parse(await copied("json"));
    assert.deepEqual(levels, bundle.taxonomy.levels);
    assert.deepEqual(
      rankings.flatMap(({ results }) => results.map(({ item }) => item)),
      shown,
    );
    const hAp = await page.getAttribute(
      `[data-metric=h_ap][data-encoder="${first}"]`,
      "data-value",
    );
    assert.equal(rankings[0].scores.h_ap, Number(hAp));
    const [header, ...rows] = (await copied("csv")).trim().split("\r\n");
    assert.equal(
      header,
      ["encoder,rank,item,score,shared_level,relation", ...levels].join(),
    );
    assert.deepEqual(
      rows.map((row) => Number(row.split(",")[2])),
      shown,
    );
    const latex = await copied("latex");
    assert.match(latex, /\\begin\{tabular\}\{lrr\}/);
    assert.match(latex, new RegExp(`H-AP & ${Number(hAp).toFixed(4)} & `));
  }));

test("where the browser does not let the page copy, the text is shown to be copied by hand", () =>
  visit(
    {
      query: "?q=5",
      before: (context) =>
        context.addInitScript(() => {
          navigator.clipboard.writeText = () =>
            Promise.reject(new DOMException("", "NotAllowedError"));
        }),
    },
    async (page) => {
      await page.click("[data-copy=csv]");
      const text = await page.waitForSelector(
        "[data-testid=copy-by-hand] textarea",
      );
      assert.match(await text.inputValue(), /^encoder,rank,item/);
      assert.deepEqual(await axeProblems(page), []);
      await page.keyboard.press("Escape");
      await page.waitForFunction(
        () => document.querySelector("dialog") === null,
      );
    },
  ));
