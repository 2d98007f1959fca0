// What the page does when something breaks while it is used.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { PICTURES } from "./fixture.mjs";
import {
  axeProblems,
  inWorker,
  keepDevice,
  openSite,
  upload,
  waitForRankings,
} from "./site.mjs";

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

const waitForBackend = (page, backend) =>
  page.waitForSelector(`[data-testid=backend][data-backend=${backend}]`);

test("a graphics device that is lost is replaced by the CPU, with the reason", () =>
  webgpu.visit({ query: "?q=7", before: keepDevice }, async (page) => {
    await waitForBackend(page, "webgpu");
    await page.workers()[0].evaluate(() => self.akinDevice.destroy());
    // The page hears of it without a request.
    await waitForBackend(page, "cpu");
    await page.click("[data-testid=backend] summary");
    assert.match(
      await page.textContent("[data-testid=backend-reason]"),
      /WebGPU was tried first, but the graphics device was lost/,
    );
    await upload(page, "own.jpg", readFileSync(PICTURES[0]));
    await waitForRankings(page, "image:own.jpg");
  }));

test("a lost device is replaced by another one where the reader has chosen WebGPU", () =>
  webgpu.visit(
    { query: "?q=7&backend=webgpu", before: keepDevice },
    async (page) => {
      const [worker] = page.workers();
      await worker.evaluate(() => {
        self.lost = self.akinDevice;
        self.lost.destroy();
      });
      await upload(page, "own.jpg", readFileSync(PICTURES[0]));
      await waitForRankings(page, "image:own.jpg");
      await waitForBackend(page, "webgpu");
      assert.ok(await worker.evaluate(() => self.akinDevice !== self.lost));
    },
  ));

test("an adapter that cannot measure time is left for the CPU, with the reason", () =>
  webgpu.visit(
    {
      query: "?q=7",
      before: inWorker(`
        Object.defineProperty(GPUAdapter.prototype, "features", { value: new Set() });
      `),
    },
    async (page) => {
      await waitForBackend(page, "cpu");
      await page.click("[data-testid=backend] summary");
      assert.match(
        await page.textContent("[data-testid=backend-reason]"),
        /lacks the feature timestamp-query/,
      );
    },
  ));

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
