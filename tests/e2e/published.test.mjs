// A site that `akin export --site` wrote works from a sub-path of any web server.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { after, test } from "node:test";
import {
  akin,
  fixture,
  launch,
  pageFolder,
  waitForRankings,
  waitForResults,
} from "./site.mjs";

const folder = mkdtempSync(join(tmpdir(), "akin-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const site = join(folder, "site");
const runs = ["HAPPIER", "NormSoftmax"].map((name) => fixture("runs", name));
const exportSite = (...more) =>
  execFileSync(
    akin,
    [
      "export",
      ...runs,
      "--out",
      join(folder, "bundle"),
      "--no-maps",
      "--title",
      "Creatures",
    ].concat(
      ["--site", site, "--page", pageFolder, "--with", fixture("half")],
      more,
    ),
    { cwd: fixture(), stdio: ["ignore", "ignore", "pipe"] },
  );

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
};
const SUB_PATH = "/courses/2026/akin/";

/** A web server of the plainest kind: files, their types, and nothing outside of the sub-path. */
async function serveSite() {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    try {
      if (!pathname.startsWith(SUB_PATH)) throw new Error("outside");
      const path = pathname.slice(SUB_PATH.length) || "index.html";
      const bytes = readFileSync(join(site, normalize(`/${path}`)));
      response
        .writeHead(200, {
          "content-type": TYPES[extname(path)] ?? "application/octet-stream",
        })
        .end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `http://127.0.0.1:${server.address().port}${SUB_PATH}`,
    stop: () => server.close(),
  };
}

test("a published site works under a sub-path, and offline", async () => {
  exportSite();
  const { address, stop } = await serveSite();
  const browser = await launch("cpu");
  after(async () => {
    await browser.close();
    stop();
  });
  const context = await browser.newContext();
  const problems = [];
  context.on("weberror", (error) => problems.push(error.error().message));
  context.on(
    "response",
    (response) =>
      response.status() >= 400 &&
      problems.push(`${response.status()} ${response.url()}`),
  );
  const page = await context.newPage();
  await page.goto(`${address}?q=5`);
  await waitForResults(page);
  await waitForRankings(page, "item:5");
  // Both bundles are there.
  assert.equal(
    JSON.parse(readFileSync(join(site, "bundles.json"))).bundles.length,
    2,
  );
  await page.goto(`${address}?view=playground`);
  await page.waitForSelector("akin-playground [data-item]");
  await page.goto(`${address}embed.html`);
  await page.waitForSelector("akin-steps .item");
  await page.goto(`${address}?q=5`);
  await waitForResults(page);
  await page.waitForSelector("[data-testid=offline][data-state=kept]");
  await context.setOffline(true);
  await page.reload();
  await waitForResults(page);
  assert.deepEqual(problems, []);
});

test("a site is replaced only when asked, and only a site", () => {
  const refused = (...args) => {
    try {
      exportSite(...args);
    } catch (error) {
      return String(error.stderr).replaceAll(/\s+/g, " ");
    }
    return assert.fail("the site was replaced");
  };
  assert.match(refused(), /--overwrite/);
  exportSite("--overwrite");
  assert.match(
    refused("--overwrite", "--with", fixture("nowhere")),
    /is not a bundle/,
  );
});
