// A bundle of somebody else may hold anything as a name. The page shows it as text.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, test } from "node:test";
import {
  bundle,
  canonical,
  fixture,
  openSite,
  waitForRankings,
} from "./site.mjs";

const IMAGE = "<img src=x onerror=ran()>";
const SCRIPT = "<script>ran()</script>";

const folder = mkdtempSync(join(tmpdir(), "akin-markup-"));
after(() => rmSync(folder, { recursive: true, force: true }));
cpSync(fixture("bundle"), folder, { recursive: true });
const { digest: _, ...manifest } = structuredClone(bundle);
const spoil = (object, ...keys) =>
  keys.forEach((key) => (object[key] = `${object[key]} ${IMAGE}${SCRIPT}`));
spoil(manifest, "title", "description", "licence", "model_card");
for (const encoder of manifest.encoders) {
  spoil(encoder, "name", "description");
  for (const map of encoder.maps) spoil(map, "name", "description");
}
const { taxonomy } = manifest;
taxonomy.classes = taxonomy.classes.map((names, level) =>
  names.map((name) => `${name} ${level === 0 ? SCRIPT : IMAGE}`),
);
manifest.digest = createHash("sha256")
  .update(canonical(manifest))
  .digest("hex");
writeFileSync(join(folder, "bundle.json"), JSON.stringify(manifest));

const { address, visit } = await openSite(
  "cpu",
  [],
  [relative(fixture("."), folder)],
);

const watch = (context) =>
  context.addInitScript(() => (globalThis.ran = () => (globalThis.hasRun = 1)));

/** Fails if a name became an element, or if something in one ran or was requested. */
async function expectNoMarkup(page, requests) {
  assert.equal(await page.locator("img[src=x]").count(), 0);
  assert.equal(await page.locator("script", { hasText: "ran()" }).count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hasRun), undefined);
  assert.ok(!requests.includes(`${address}x`));
}

/** Waits until an element shows these texts. */
async function shows(page, selector, ...texts) {
  for (const text of texts)
    await page
      .locator(selector, { hasText: text })
      .first()
      .waitFor({ state: "attached" });
}

test("the search shows markup in names as text", () =>
  visit({ query: "?q=5", before: watch }, async (page, requests) => {
    await waitForRankings(page, "item:5");
    await shows(page, ".bundle-title", IMAGE, SCRIPT);
    await shows(page, "[data-testid=results]", IMAGE);
    await shows(page, "[data-testid=query]", IMAGE);
    await shows(page, "[data-testid=model-card]", IMAGE, SCRIPT);
    await expectNoMarkup(page, requests);
  }));

test("the dialog of a result shows markup in names as text", () =>
  visit({ query: "?q=5", before: watch }, async (page, requests) => {
    await waitForRankings(page, "item:5");
    await page.locator("[data-look-item]").first().click();
    await page.waitForSelector("akin-look [data-testid=look][data-busy=false]");
    await shows(page, "akin-look dialog", IMAGE);
    await expectNoMarkup(page, requests);
  }));

test("the map shows markup in names as text", () =>
  visit(
    { query: "?view=map", before: watch, wait: false },
    async (page, requests) => {
      await page.waitForSelector("[data-testid=map][data-visible]");
      await shows(page, "[data-testid=tree]", SCRIPT);
      await page.focus("[data-testid=map]");
      await page.keyboard.press("ArrowRight");
      await shows(page, "[data-testid=map-status]", IMAGE);
      await page.focus("[data-testid=affinity]");
      await page.keyboard.press("ArrowDown");
      await shows(page, "[data-testid=affinity-status]", IMAGE);
      await expectNoMarkup(page, requests);
    },
  ));
