// How often the page calls into its wasm modules, and what the time that it shows for an answer covers.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { PICTURES } from "./fixture.mjs";
import {
  inWorker,
  openSite,
  pageFolder,
  upload,
  waitForRankings,
} from "./site.mjs";

// With more items than one search asks for.
const GROCERIES = fileURLToPath(
  new URL("../../www/galleries/groceries", import.meta.url),
);
const { visit } = await openSite("cpu", [], [GROCERIES]);

test("no module runs all constructors again in every call", () => {
  const modules = readdirSync(pageFolder).filter((name) =>
    /^akin-.*\.js$/.test(name),
  );
  assert.deepEqual(modules.sort(), [
    "akin-science.js",
    "akin-training-ground.js",
    "akin-web.js",
  ]);
  for (const name of modules) {
    const text = readFileSync(join(pageFolder, name), "utf8");
    assert.ok(!text.includes("_command_export"), name);
  }
});

/** Counts the calls of all exports of the engine as `akinCalls`: for `before` of a visit. */
const countCalls = inWorker(`
  self.akinCalls = 0;
  const counted = (value) =>
    typeof value === "function" ? (...given) => (self.akinCalls++, value(...given)) : value;
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = async (...given) => {
    const { exports } = await instantiate(...given);
    const value = Object.fromEntries(Object.entries(exports).map(([name, value]) => [name, counted(value)]));
    return Object.create(WebAssembly.Instance.prototype, { exports: { value } });
  };
`);

test("a search calls the engine ten times at most, however many results it has", () =>
  visit({ before: countCalls, query: "?q=0" }, async (page) => {
    const [worker] = page.workers();
    await worker.evaluate(async () => {
      const address = new URL("../akin-web.js", globalThis.location.href).href;
      const { Engine } = await import(address);
      const { rank } = Engine.prototype;
      globalThis.akinSearches = [];
      Engine.prototype.rank = function (...given) {
        const before = globalThis.akinCalls;
        const ranked = rank.apply(this, given);
        const calls = globalThis.akinCalls - before;
        globalThis.akinSearches.push({ results: ranked.results.length, calls });
        return ranked;
      };
    });
    await upload(page, "own.jpg", readFileSync(PICTURES[0]));
    await waitForRankings(page, "image:own.jpg");
    await page.click(".samples [data-item]");
    await page.waitForFunction(
      () =>
        document.querySelector("[data-testid=ranking]").dataset.query !==
          "image:own.jpg" && !document.querySelector("[aria-busy=true]"),
    );
    // More than the strip has.
    for (;;) {
      const shown = await page.$$("[data-testid=results] li");
      if (shown.length > 100) break;
      await page.click("[data-testid=more]:enabled");
      await page.waitForFunction(
        (before) =>
          document.querySelectorAll("[data-testid=results] li").length > before,
        shown.length,
      );
    }
    const searches = await worker.evaluate(() => globalThis.akinSearches);
    const numbers = searches.map(({ results }) => results);
    assert.ok(
      numbers.includes(100) && numbers.some((number) => number > 100),
      numbers.join(),
    );
    for (const { results, calls } of searches)
      assert.ok(
        calls >= 1 && calls <= 10,
        `${calls} calls for ${results} results`,
      );
  }));

test("the time of an answer covers the search and its way to the page", () =>
  visit({ query: "?q=0" }, async (page) => {
    const [worker] = page.workers();
    await worker.evaluate(async () => {
      const address = new URL("../akin-web.js", globalThis.location.href).href;
      const { Engine } = await import(address);
      const { rank } = Engine.prototype;
      Engine.prototype.rank = function (...given) {
        const end = performance.now() + 200;
        while (performance.now() < end);
        return rank.apply(this, given);
      };
      const post = globalThis.postMessage.bind(globalThis);
      globalThis.akinReplies = [];
      globalThis.postMessage = (message, transfer) => {
        globalThis.akinReplies.push(Object.keys(message.result ?? {}));
        setTimeout(() => post(message, transfer), 300);
      };
    });
    await upload(page, "own.jpg", readFileSync(PICTURES[0]));
    await waitForRankings(page, "image:own.jpg");
    await page.waitForSelector("[data-timing=decoding]", { state: "attached" });
    const parts = await page.$$eval("[data-timing]", (elements) =>
      Object.fromEntries(
        elements.map(({ dataset }) => [dataset.timing, Number(dataset.value)]),
      ),
    );
    const { whole, decoding, network, search, drawing, rest } = parts;
    assert.ok(search >= 200, JSON.stringify(parts));
    assert.ok(rest >= 300, JSON.stringify(parts));
    const replies = await worker.evaluate(() => globalThis.akinReplies);
    const embedding = replies.filter((keys) => keys.includes("embedded"));
    assert.deepEqual(embedding, [["embedded", "ranked"]]);
    // No second message has the ranking.
    assert.ok(!replies.some((keys) => keys.includes("results")));
    const sum = decoding + network + search + drawing + rest;
    assert.ok(Math.abs(whole - sum) < 1e-6, JSON.stringify(parts));
  }));
