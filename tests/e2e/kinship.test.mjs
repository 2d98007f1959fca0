// Galleries without a tree: items with several label paths, and a matrix of relevance.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { axeProblems, fixture, openSite, waitForRankings } from "./site.mjs";

const manifest = (name) =>
  JSON.parse(readFileSync(fixture(name, "bundle.json"), "utf8"));

/** Each result that is shown: its item, its level, the text of its paths, and how much of its ring is filled. */
const results = (page) =>
  page.$$eval("[data-testid=results] li[data-item]", (rows) =>
    rows.map((row) => {
      const arcs = [...row.querySelectorAll("svg.ring path")];
      const length = (some) =>
        some.reduce((sum, arc) => sum + arc.getTotalLength(), 0);
      return {
        item: Number(row.dataset.item),
        shared: Number(row.dataset.sharedLevel),
        path: row.querySelector(".path")?.textContent ?? "",
        relation: row.querySelector(".relation").textContent.trim(),
        filled:
          length(arcs.filter((arc) => arc.matches(".filled"))) / length(arcs),
      };
    }),
  );

test("an item with two label paths lists both, and shares what its nearest path shares", async () => {
  const { visit } = await openSite("cpu", [], ["paths"]);
  const { kinds, kinship } = manifest("paths").kinship;
  const pathsOf = (item) => kinship.paths[kinds[item]];
  const shared = (a, b) =>
    Math.max(
      ...pathsOf(a).flatMap((own) =>
        pathsOf(b).map(
          (other) => own.findLastIndex((id, at) => id === other[at]) + 1,
        ),
      ),
    );
  const query = kinds.findIndex((kind) => kinship.paths[kind].length === 2);
  await visit({ query: `?q=${query}` }, async (page) => {
    await waitForRankings(page, `item:${query}`);
    const shown = await results(page);
    for (const { item, shared: level, path } of shown) {
      assert.equal(level, shared(query, item));
      assert.equal(path.includes(" · "), pathsOf(item).length === 2);
    }
    const orders = new Set(pathsOf(query).map(([order]) => order));
    assert.equal(orders.size, 2);
    assert.match(await page.innerText("[data-testid=query] .path"), / · /);
    assert.deepEqual(await axeProblems(page), []);
  });
});

test("with a matrix, a ring is filled as far as the relevance reaches", async () => {
  const { visit } = await openSite("cpu", [], ["matrix"]);
  const { kinds, kinship } = manifest("matrix").kinship;
  await visit({ query: "?q=3" }, async (page) => {
    await waitForRankings(page, "item:3");
    const shown = await results(page);
    assert.ok(new Set(shown.map(({ shared }) => shared)).size > 2);
    for (const { item, shared, filled, relation } of shown) {
      const relevance = kinship.matrix[kinds[3]][kinds[item]];
      assert.equal(shared, [0, 0.2, 0.5, 1].indexOf(relevance));
      // The gaps between the segments leave a little room.
      assert.ok(Math.abs(filled - relevance) < 0.06, `${filled} ${relevance}`);
      assert.equal(
        relation,
        relevance === 0 ? "stranger" : `relevance ${relevance}`,
      );
    }
    assert.deepEqual(await axeProblems(page), []);
    assert.equal(await page.locator("[data-filter]").count(), 1);
  });
  await visit({ query: "?view=map", wait: false }, async (page) => {
    await page.waitForSelector("[data-testid=map][data-visible]");
    const colours = page.locator("[data-testid=map-colour] option");
    assert.deepEqual(await colours.allInnerTexts(), [
      "class",
      "kinship to the query",
    ]);
    const leaf = "[data-testid=tree] [role=treeitem]:not([aria-expanded])";
    assert.ok((await page.locator(leaf).count()) > 2);
  });
});
