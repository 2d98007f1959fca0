// The page works offline after the first visit, and shows nothing stale when it is online again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundle, openSite, waitForRankings, waitForResults } from "./site.mjs";

const { visit } = await openSite("cpu");
const [first] = bundle.encoders.map(({ name }) => name);
const query = `?encoder=${first}&q=5`;

const kept = (page) =>
  page.waitForSelector("[data-testid=offline][data-state=kept]");
const scores = (page) =>
  page.$$eval("[data-metric]", (cells) =>
    cells.map(({ dataset }) => [dataset.metric, dataset.value]),
  );
const items = (page) =>
  page.$$eval("[data-testid=results] li", (all) =>
    all.map(({ dataset }) => dataset.item),
  );

test("the second visit works offline and shows the same results", () =>
  visit({ query, serviceWorkers: "allow" }, async (page) => {
    await waitForRankings(page, "item:5");
    const [before, ranked] = [await scores(page), await items(page)];
    await kept(page);
    await page.context().setOffline(true);
    await page.reload();
    await waitForResults(page);
    await waitForRankings(page, "item:5");
    assert.deepEqual(await scores(page), before);
    assert.deepEqual(await items(page), ranked);
    // The thumbnails are there, too.
    await page.waitForFunction(() =>
      document.querySelector("akin-thumb")?.style.getPropertyValue("--sheet"),
    );
    assert.equal(await page.$("akin-thumb[data-failed]"), null);
  }));

test("a bundle that was exported again is read again, although the old one is kept", () =>
  visit({ query, serviceWorkers: "allow" }, async (page, requests) => {
    await kept(page);
    await page.reload();
    await waitForResults(page);
    requests.length = 0;
    await page.reload();
    await waitForResults(page);
    // The manifest is asked for each time. A file with the same hash is not.
    const names = await page.evaluate(async () => {
      const cache = await caches.open("akin-documents");
      return (await cache.keys()).map(({ url }) => url.split("/").pop());
    });
    assert.ok(
      names.includes("bundle.json") && names.includes("akin-files.json"),
      names.join(),
    );
    assert.ok(
      requests.some((url) => url.endsWith("/bundle.json")),
      requests.join("\n"),
    );
    const answer = await page.evaluate(async () => {
      // As if the server had another bundle: the worker must hand on what the server says.
      const cache = await caches.open("akin-documents");
      const [request] = (await cache.keys()).filter(({ url }) =>
        url.endsWith("/bundle.json"),
      );
      await cache.put(request, new Response("an old manifest"));
      return (await fetch(request.url)).text();
    });
    assert.equal(JSON.parse(answer).digest, bundle.digest);
  }));

test("a button removes what is kept and says how much it is", () =>
  visit({ query, serviceWorkers: "allow" }, async (page) => {
    await kept(page);
    const button = page.locator("[data-testid=empty-cache]");
    assert.match(
      await button.innerText(),
      /Remove \d+(\.\d)? MB from this device/,
    );
    const bytes = Number(
      await page.getAttribute("[data-testid=offline]", "data-bytes"),
    );
    assert.ok(
      bytes >
        bundle.files.find(({ path }) => path === bundle.encoders[0].weights)
          .bytes,
      `${bytes} bytes`,
    );
    await button.click();
    await page.waitForSelector("[data-testid=offline][data-state=empty]");
    assert.deepEqual(await page.evaluate(() => caches.keys()), []);
  }));
