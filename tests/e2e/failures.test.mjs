// What the page does when something breaks while it is used.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { PICTURES } from "./fixture.mjs";
import { axeProblems, openSite, upload, waitForRankings } from "./site.mjs";

const cpu = await openSite("cpu");
const webgpu = await openSite("webgpu");

test("a browser without room says that the page will not work offline", () =>
  cpu.visit({ query: "?q=5", serviceWorkers: "allow" }, async (page) => {
    const session = await page.context().newCDPSession(page);
    await session.send("Storage.overrideQuotaForOrigin", {
      origin: new URL(page.url()).origin,
      quotaSize: 100_000,
    });
    const offline = await page.waitForSelector(
      "[data-testid=offline][data-state=full]",
    );
    assert.match(
      await offline.innerText(),
      /does not work offline[^]*Free some space/,
    );
    assert.deepEqual(await axeProblems(page), []);
    // The search goes on.
    await page.click(".samples [data-item]");
    await page.waitForSelector("[data-testid=ranking][aria-busy=false]");
  }));

/** Keeps the device that the engine gets, so that a test can take it away. */
const keepDevice = (context) =>
  context.route("**/build/worker.js", async (route) => {
    const response = await route.fetch();
    const keep = `{
      const request = GPUAdapter.prototype.requestDevice;
      GPUAdapter.prototype.requestDevice = async function (...args) {
        return (self.akinDevice = await request.apply(this, args));
      };
    }`;
    await route.fulfill({
      response,
      body: `${keep}\n${await response.text()}`,
    });
  });

test("a graphics device that is lost is replaced by the CPU, with the reason", () =>
  webgpu.visit({ query: "?q=7", before: keepDevice }, async (page) => {
    assert.equal(
      await page.getAttribute("[data-testid=backend]", "data-backend"),
      "webgpu",
    );
    await page.workers()[0].evaluate(() => self.akinDevice.destroy());
    await upload(page, "own.jpg", readFileSync(PICTURES[0]));
    await waitForRankings(page, "image:own.jpg");
    assert.equal(
      await page.getAttribute("[data-testid=backend]", "data-backend"),
      "cpu",
    );
    await page.click("[data-testid=backend] summary");
    assert.match(
      await page.textContent("[data-testid=backend-reason]"),
      /WebGPU was tried first, but/,
    );
  }));

test("an engine that stops again and again leaves an explanation, and starts when the reader asks for it", () =>
  cpu.visit({ query: "?q=7" }, async (page) => {
    for (let time = 0; time < 3; time++) {
      await page.waitForSelector("[data-testid=status][data-state=ready]");
      const [worker] = page.workers();
      await worker.evaluate(() => self.close());
      await page.waitForSelector(
        "[data-testid=status]:not([data-state=ready])",
      );
    }
    const notice = await page.waitForSelector("[data-testid=notice]");
    assert.equal(await notice.getAttribute("data-code"), "worker");
    assert.match(await notice.innerText(), /worker stopped[^]*reload the page/);
    await page.click("[data-testid=notice] button");
    await waitForRankings(page, "item:7");
  }));
