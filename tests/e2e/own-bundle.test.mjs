// A bundle in a folder on the reader's device, or at an address of the same site.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync, cpSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import {
  axeProblems,
  fixture,
  openSite,
  waitForNotice,
  waitForRankings,
} from "./site.mjs";

const { visit } = await openSite("cpu");
const folder = mkdtempSync(join(tmpdir(), "akin-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const scores = (page) =>
  page.$$eval("[data-metric]", (cells) =>
    cells.map(({ dataset }) => [dataset.metric, dataset.value]),
  );
const openEntry = (page) => page.click("[data-testid=bundle-entry] summary");
const chooseFolder = async (page, path) => {
  await openEntry(page);
  await page.setInputFiles("[data-testid=bundle-folder]", path);
};

test("a chosen folder shows the same scores as the bundle on the server, without a request", () =>
  visit({ query: "?q=5" }, async (page, requests) => {
    await waitForRankings(page, "item:5");
    const before = await scores(page);
    await openEntry(page);
    assert.deepEqual(await axeProblems(page), []);
    requests.length = 0;
    await page.setInputFiles("[data-testid=bundle-folder]", fixture("bundle"));
    await page.waitForSelector(
      "[data-testid=galleries] input[value='local:bundle']:checked",
    );
    await page.waitForSelector("[data-testid=status][data-state=ready]");
    await page.click(".samples [data-item='5']");
    await waitForRankings(page, "item:5");
    assert.deepEqual(await scores(page), before);
    assert.equal(await page.$("akin-thumb[data-failed]"), null);
    const fetched = requests.filter(
      (url) =>
        !url.startsWith("blob:") &&
        !/\/(akin-web|build\/)/.test(new URL(url).pathname),
    );
    assert.deepEqual(fetched, []);
    // The folder cannot be part of a link.
    await page.reload();
    const { code, text } = await waitForNotice(page);
    assert.equal(code, "bundle");
    assert.match(text, /not open any more.*Choose the folder again/);
  }));

test("a folder without a bundle, or with a damaged one, is refused by name", async () => {
  const empty = join(folder, "letters");
  const damaged = join(folder, "damaged");
  cpSync(fixture("bundle"), damaged, { recursive: true });
  writeFileSync(join(damaged, "labels.bin"), "no labels");
  cpSync(fixture("bundle", "labels.bin"), join(empty, "labels.bin"), {
    recursive: true,
  });
  await visit({}, async (page) => {
    await chooseFolder(page, empty);
    assert.match(
      (await waitForNotice(page)).text,
      /“letters” holds no bundle\.json/,
    );
    await chooseFolder(page, damaged);
    await page.waitForSelector("[data-testid=status][data-state=error]");
    assert.match(await page.innerText("main"), /labels\.bin/);
  });
});

test("an address on the same site opens another bundle, and one elsewhere is refused", () =>
  visit({}, async (page) => {
    await openEntry(page);
    await page.fill("[data-testid=bundle-address]", "bundles/half");
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      () =>
        new URL(location.href).searchParams.get("bundle") === "bundles/half",
    );
    await page.waitForSelector("[data-testid=status][data-state=ready]");
    await openEntry(page);
    await page.fill(
      "[data-testid=bundle-address]",
      "https://example.org/bundle/",
    );
    await page.keyboard.press("Enter");
    assert.equal((await waitForNotice(page)).code, "origin");
  }));
