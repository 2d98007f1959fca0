// Where an encoder looks, and the codes of hash encoders.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { axeProblems, fixture, openSite, waitForRankings } from "./site.mjs";

const { visit } = await openSite("cpu", [], ["bundle", "inside"]);
const INSIDE = JSON.parse(readFileSync(fixture("inside/bundle.json"), "utf8"));
const nameOf = (bits) =>
  INSIDE.encoders.find(
    ({ family, dimension }) => family === "HPDH" && dimension === bits,
  ).name;

const photo = (name) => ({
  name,
  mimeType: "application/octet-stream",
  buffer: readFileSync(
    new URL(`../../core/tests/images/${name}`, import.meta.url),
  ),
});

/** Waits until the dialog shows all values. Resolves to its figures. */
async function waitForLook(page) {
  await page.waitForSelector("akin-look [data-testid=look][data-busy=false]");
  assert.equal(await page.$("akin-look [data-testid=notice]"), null);
  const values = (side) =>
    page.$eval(`akin-look [data-testid=look-${side}]`, ({ dataset }) => ({
      rows: Number(dataset.rows),
      columns: Number(dataset.columns),
      values: dataset.values.split(" ").map(Number),
    }));
  const dialog = await page.$eval(
    "akin-look [data-testid=look]",
    ({ dataset }) => ({
      exact: dataset.exact === "true",
      score: Number(dataset.score),
    }),
  );
  return {
    ...dialog,
    query: await values("query"),
    item: await values("item"),
  };
}

/** Waits until the address names this result, or none. */
const waitForAddress = (page, look) =>
  page.waitForFunction(
    (look) => new URL(location.href).searchParams.get("look") === look,
    look,
  );

const sum = (values) => values.reduce((sum, value) => sum + value, 0);

test("by keyboard alone, a result shows its cells, whose numbers add up to the score", () =>
  visit({ query: "?encoder=HAPPIER&q=17" }, async (page) => {
    await waitForRankings(page, "item:17");
    await page.focus("[data-testid=results] [data-rove][tabindex='0']");
    await page.keyboard.press("ArrowRight");
    const item = await page.evaluate(
      () => document.activeElement.dataset.queryItem,
    );
    await page.keyboard.press("Tab");
    assert.equal(
      await page.evaluate(() => document.activeElement.dataset.lookItem),
      item,
    );
    await page.keyboard.press("Enter");
    const { exact, score, query, item: result } = await waitForLook(page);
    assert.ok(exact);
    assert.match(
      await page.textContent("akin-look [data-testid=look-how]"),
      /exactly a sum/,
    );
    for (const side of [query, result]) {
      assert.equal(side.values.length, side.rows * side.columns);
      assert.ok(side.values.length > 1);
      assert.ok(
        Math.abs(sum(side.values) - score) < 1e-5,
        `${sum(side.values)} and ${score}`,
      );
    }
    await waitForAddress(page, item);
    assert.deepEqual(await axeProblems(page), []);

    await page.focus("akin-look [data-testid=look-query]");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    assert.match(
      await page.textContent("akin-look [data-testid=look-readout]"),
      /^\s*Query, row 2, column 1:/,
    );
    await page.keyboard.press("Escape");
    await page.waitForSelector("akin-look", { state: "detached" });
    assert.equal(
      await page.evaluate(() => document.activeElement.dataset.lookItem),
      item,
    );
    await waitForAddress(page, null);
  }));

test("an address with a result shows the same cells", () =>
  visit(
    { query: "?encoder=HAPPIER&compare=NormSoftmax&q=17" },
    async (page) => {
      await waitForRankings(page, "item:17", 2);
      await page.click(
        "[data-encoder=NormSoftmax] .results li:nth-child(2) [data-look-item]",
      );
      const first = await waitForLook(page);
      await page.waitForFunction(() =>
        /^\d+\.2$/.test(new URL(location.href).searchParams.get("look") ?? ""),
      );
      await page.reload();
      assert.deepEqual(await waitForLook(page), first);
      assert.match(
        await page.textContent("akin-look dialog"),
        /as NormSoftmax compares/,
      );
    },
  ));

test("for pictures that are there as originals, the score is that of the ranking", () =>
  visit({ query: "?encoder=HAPPIER" }, async (page) => {
    await page.click("[data-testid=own-entry] summary");
    await page.setInputFiles(
      "[data-testid=own-files]",
      ["rgb.jpg", "progressive.jpg", "turned.jpg", "detail.png"].map(photo),
    );
    await page.waitForSelector("[data-testid=own][data-count='4']");
    await page.waitForFunction(
      () =>
        document.querySelectorAll(
          "[data-testid=ranking][aria-busy=false] .results li",
        ).length === 3,
    );
    const shown = await page.$eval(".results li", ({ dataset }) =>
      Number(dataset.score),
    );
    await page.click(".results li:first-child [data-look-item]");
    const { score, query } = await waitForLook(page);
    assert.ok(Math.abs(score - shown) < 1e-4, `${score} and ${shown}`);
    assert.ok(Math.abs(sum(query.values) - shown) < 1e-4);
    // An own picture has no place in an address.
    assert.equal(new URL(page.url()).searchParams.get("look"), null);
  }));

test("a hyperbolic score is explained by covering patches", () =>
  visit({ query: "?bundle=bundles/inside/&encoder=HIER&q=3" }, async (page) => {
    await waitForRankings(page, "item:3");
    await page.click(".results li:first-child [data-look-item]");
    const { exact, query, item } = await waitForLook(page);
    assert.ok(!exact);
    assert.match(
      await page.textContent("akin-look [data-testid=look-how]"),
      /mean colour/,
    );
    for (const { rows, columns, values } of [query, item]) {
      assert.deepEqual([rows, columns, values.length], [6, 6, 36]);
      assert.ok(values.some((value) => value !== 0));
    }
  }));

test("a hash encoder shows its codes, the bits that differ, and a choice of bits", () =>
  visit(
    { query: `?bundle=bundles/inside/&encoder=${nameOf(16)}&q=3` },
    async (page) => {
      await waitForRankings(page, "item:3");
      const code = await page.getAttribute(
        "[data-testid=query-code] [data-code]",
        "data-code",
      );
      assert.match(code, /^[01]{16}$/);
      const results = await page.$$eval(".results li", (items) =>
        items.map((item) => ({
          score: Number(item.dataset.score),
          marked: item.querySelectorAll(".ticks .differs").length,
          text: item.querySelector(".number").textContent,
        })),
      );
      for (const { score, marked, text } of results) {
        assert.equal(marked, -score);
        assert.equal(text, `${-score} of 16 bits`);
      }
      const last = results.length;
      await page.click(`.results li:nth-child(${last}) [data-look-item]`);
      const { exact } = await waitForLook(page);
      assert.ok(!exact);
      const differing = await page.getAttribute(
        "akin-look [data-testid=look-codes]",
        "data-differing",
      );
      assert.equal(
        differing.split(" ").filter(Boolean).length,
        -results[last - 1].score,
      );
      await page.keyboard.press("Escape");
      await page.waitForSelector("akin-look", { state: "detached" });

      const requests = [];
      page.on("request", (request) => requests.push(request.url()));
      await page.selectOption("[data-testid=bits]", { label: "32" });
      await page.waitForFunction(
        () =>
          document.querySelector("[data-testid=query-code] [data-code]")
            ?.dataset.code.length === 32,
      );
      await page.waitForFunction(
        (name) => new URL(location.href).searchParams.get("encoder") === name,
        nameOf(32),
      );
      assert.equal(
        await page.isChecked("[data-testid=encoders] [value=HPDH]"),
        true,
      );
      assert.deepEqual(await axeProblems(page), []);
    },
  ));
