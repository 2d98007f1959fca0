// The page for every kind of reader: while loading, by keyboard, by screen reader, on a narrow screen.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { PICTURES } from "./fixture.mjs";
import {
  axeProblems,
  bundle,
  openSite,
  upload,
  waitForRankings,
  waitForResults,
} from "./site.mjs";

const { visit } = await openSite("cpu");
const [first, second] = bundle.encoders.map(({ name }) => name);

test("the explanation is readable before the engine has loaded", async () => {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  const hold = (context) =>
    context.route("**/akin-web_bg.wasm", async (route) => {
      await released;
      await route.continue();
    });
  await visit({ before: hold, wait: false }, async (page) => {
    await page.waitForSelector("[data-testid=status][data-state=loading]");
    await page.waitForSelector(
      "[data-testid=progress] [data-phase=code]:not([data-state=done])",
    );
    for (const part of ["h1", "figure figcaption", "#read h2", "footer"])
      assert.ok(await page.isVisible(part), part);
    const text = await page.innerText("main");
    for (const part of [
      "0.78",
      "0.67",
      "H-AP is the score",
      "Your pictures stay here",
    ])
      assert.ok(text.includes(part), part);
    assert.deepEqual(await axeProblems(page), []);
    release();
    await waitForResults(page);
  });
});

for (const scheme of ["light", "dark"]) {
  for (const width of [360, 1280]) {
    test(`axe finds nothing at ${width} px in ${scheme}`, () =>
      visit({ width, scheme, query: `?encoder=${first}` }, async (page) => {
        assert.deepEqual(await axeProblems(page), []);
        await upload(page, "own.jpg", readFileSync(PICTURES[0]));
        await waitForRankings(page, "image:own.jpg");
        assert.deepEqual(await axeProblems(page), []);
        await upload(page, "letter.txt", Buffer.from("Dear akin"));
        await page.waitForSelector("[data-testid=notice]");
        assert.deepEqual(await axeProblems(page), []);
      }));
  }
  test(`axe finds nothing with two encoders side by side in ${scheme}`, () =>
    visit(
      { width: 360, scheme, query: `?encoder=${first}&compare=${second}` },
      async (page) => {
        assert.deepEqual(await axeProblems(page), []);
      },
    ));
}

test("a reader can choose a sample and walk through its results by keyboard", () =>
  visit({}, async (page) => {
    const focused = (selector) =>
      page.evaluate(
        (selector) => document.activeElement?.closest(selector) !== null,
        selector,
      );
    const tabTo = async (selector) => {
      for (let pressed = 0; pressed < 60; pressed++) {
        await page.keyboard.press("Tab");
        if (await focused(selector)) return;
      }
      assert.fail(`${selector} cannot be reached with Tab`);
    };
    await tabTo(".samples [data-item]");
    await page.keyboard.press("ArrowRight");
    const item = await page.evaluate(() => document.activeElement.dataset.item);
    await page.keyboard.press("Enter");
    await waitForRankings(page, `item:${item}`);
    assert.match(
      await page.innerText("[data-testid=status]"),
      /Ranked by .*H-AP/,
    );

    await tabTo("[data-testid=results] li");
    await page.keyboard.press("ArrowRight");
    const next = await page.evaluate(
      () => document.activeElement.closest("li").dataset.item,
    );
    await page.keyboard.press("Enter");
    await waitForRankings(page, `item:${next}`);
  }));

test("a link shows the same scores to another reader", () =>
  visit({ query: `?encoder=${first}&compare=${second}&q=5` }, async (page) => {
    const scores = () =>
      page.$$eval("[data-metric]", (cells) =>
        cells.map(({ dataset }) => [
          dataset.metric,
          dataset.encoder,
          dataset.value,
        ]),
      );
    const before = await scores();
    assert.ok(before.length > 0);
    await page.reload();
    await waitForResults(page);
    await waitForRankings(page, "item:5", 2);
    assert.deepEqual(await scores(), before);
  }));

test("a killed engine is restarted and answers the same query", () =>
  visit({ query: "?q=7" }, async (page) => {
    const score = () => page.getAttribute("[data-metric=h_ap]", "data-value");
    const before = await score();
    await page.workers()[0].evaluate(() => self.close());
    await page.waitForFunction(() =>
      document
        .querySelector("[data-testid=backend-reason]")
        ?.textContent.includes("restarted"),
    );
    await page.waitForSelector("[data-testid=status][data-state=ready]");
    await waitForRankings(page, "item:7");
    assert.equal(await score(), before);
  }));
