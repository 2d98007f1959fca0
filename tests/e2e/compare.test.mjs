// Two encoders side by side in the search, its filter by class, and one bundle in all views.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axeProblems, openSite, waitForRankings } from "./site.mjs";

const { visit } = await openSite("cpu");

/** The results of each ranking that are shown, with their ranks. */
const rankings = (page) =>
  page.$$eval("[data-testid=results]", (lists) =>
    lists.map((list) =>
      [...list.querySelectorAll("li[data-item]")].map((row) => ({
        rank: Number(row.querySelector(".rank").textContent),
        shared: Number(row.dataset.sharedLevel),
        worse: row.dataset.worse === "true",
        further: row.querySelector(".further")?.textContent ?? "",
        path: row.innerText,
      })),
    ),
  );

test("side by side, results that are further from the query than the other encoder's are marked", () =>
  visit({ query: "?q=5" }, async (page) => {
    await waitForRankings(page, "item:5");
    assert.equal(await page.$("[data-testid=difference-text]"), null);
    await page.click("[data-testid=compare]");
    await waitForRankings(page, "item:5", 2);
    const [first, second] = await rankings(page);
    for (const [own, other] of [
      [first, second],
      [second, first],
    ]) {
      for (const [place, { shared, worse, further }] of own.entries()) {
        const levels = other[place].shared - shared;
        assert.equal(worse, levels > 0);
        assert.equal(
          further,
          levels > 0 ? `${levels} level${levels > 1 ? "s" : ""} further` : "",
        );
      }
    }
    const at = first.findIndex(
      ({ shared }, place) => shared !== second[place].shared,
    );
    const text = await page.innerText("[data-testid=difference-text]");
    assert.match(
      text,
      at < 0 ? /same kinship|At rank/ : new RegExp(`^At rank ${at + 1}, `),
    );
    assert.deepEqual(await axeProblems(page), []);
  }));

test("the filter shows the results of one class with their ranks, and a link keeps it", () =>
  visit({ query: "?q=5" }, async (page) => {
    await waitForRankings(page, "item:5");
    const filter = page.locator("[data-filter='1']");
    const name = await filter.locator("option").nth(1).innerText();
    await filter.selectOption({ label: name });
    await page.waitForURL(/class=1\.\d+/);
    const ofClass = () =>
      page.waitForFunction((name) => {
        const rows = [
          ...document.querySelectorAll("[data-testid=results] li[data-item]"),
        ];
        const ranking = document.querySelector("[data-testid=ranking]");
        return (
          ranking?.ariaBusy === "false" &&
          rows.length > 0 &&
          rows.every(({ textContent }) => textContent.includes(name))
        );
      }, name);
    await ofClass();
    const [rows] = await rankings(page);
    const ranks = rows.map(({ rank }) => rank);
    assert.deepEqual(
      ranks,
      [...ranks].sort((a, b) => a - b),
    );
    await page.reload();
    await ofClass();
    await page.locator("[data-filter='1']").selectOption("");
    await page.waitForFunction(() =>
      [...document.querySelectorAll("[data-testid=results] .rank")]
        .map(({ textContent }) => textContent)
        .join()
        .startsWith("1,2,3,4,5"),
    );
  }));

test("a gallery that is switched in one view is switched in all", () =>
  visit({ query: "?q=5" }, async (page) => {
    const link = (name) =>
      page.locator("#views").getByRole("link", { name, exact: true });
    await waitForRankings(page, "item:5");
    const other = page.locator("[data-testid=galleries] input").nth(1);
    const path = await other.inputValue();
    await link("Map").click();
    await page.waitForSelector("akin-map [data-testid=tree]");
    await page.locator("[data-testid=map-gallery]").selectOption(path);
    await page.waitForURL((url) => url.searchParams.get("bundle") === path);
    await link("Search").click();
    await page.waitForFunction(
      () => document.documentElement.dataset.view === "search",
    );
    const { searchParams } = new URL(page.url());
    assert.equal(searchParams.get("bundle"), path);
    assert.equal(searchParams.get("q"), null);
    await page.waitForSelector(
      `[data-testid=galleries] input[value='${path}']:checked`,
    );
    await page.waitForSelector("[data-testid=results] li");
  }));
