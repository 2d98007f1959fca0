// The page, served by `akin serve` and looked at in headless Chromium.
//
// AKIN is the binary, AKIN_FIXTURE the folder that fixture.mjs has filled, CHROMIUM the browser, and
// AKIN_PAGE a built page other than www/dist.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const wanted = (name) => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run tests/run, or see the head of tests/e2e/site.mjs`);
  return value;
};

export const akin = wanted("AKIN");
export const fixture = (...path) => join(wanted("AKIN_FIXTURE"), ...path);
export const bundle = JSON.parse(readFileSync(fixture("bundle/bundle.json"), "utf8"));

/** Chromium that talks to nobody by itself. Only with these two flags is there WebGPU, in software. */
const QUIET = ["--headless=new", "--no-sandbox", "--no-first-run", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const FLAGS = { webgpu: ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"], cpu: [] };

/** How long a page may take to open: the software adapter compiles every shader on the CPU. */
const PATIENCE = 180_000;

/** Starts `akin serve` and resolves to its address and a way to stop it. */
function serve() {
  // Named, so that it is tested as it is and not built here.
  const page = process.env.AKIN_PAGE ?? fileURLToPath(new URL("../../www/dist", import.meta.url));
  const server = spawn(akin, ["serve", fixture("bundle"), "--port", "0", "--page", page], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  server.stderr.on("data", (text) => (said += text));
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.once("exit", (code) => reject(new Error(`akin serve ended with ${code}: ${said}`)));
    server.stdout.once("data", (text) => resolve({ address: String(text).trim(), stop: () => server.kill("SIGINT") }));
  });
}

/**
 * A site for one test file. `visit` opens a page of its own, hands it to `look`, and then holds it to
 * what every page must do: ask its own origin only, throw nothing, and fit its width. `look` gets the
 * addresses that were asked for, too.
 */
export async function openSite(backend) {
  const { address, stop } = await serve();
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [...QUIET, ...FLAGS[backend]],
  });
  after(async () => {
    await browser.close();
    stop();
  });

  async function visit({ query = "", width = 1280, scheme = "light", before, wait = true }, look) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
    const [faults, asked] = [[], []];
    context.on("request", (request) => {
      const url = request.url();
      asked.push(url);
      if (!url.startsWith(address) && !/^(blob|data):/.test(url)) faults.push(`a request to another origin: ${url}`);
    });
    context.on("weberror", (error) => faults.push(`thrown: ${error.error().message}`));
    try {
      const page = await context.newPage();
      page.setDefaultTimeout(PATIENCE);
      page.on("websocket", (socket) => faults.push(`a socket to ${socket.url()}`));
      await before?.(context);
      await page.goto(address + query);
      if (wait) await settled(page);
      await look(page, asked);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (overflow > 0) faults.push(`the page is ${overflow} px wider than its ${width}`);
    } finally {
      await context.close();
    }
    assert.deepEqual(faults, []);
  }
  return { address, visit };
}

/** Waits until the page is ready with an answer; an error that it shows fails the test with its text. */
export async function settled(page) {
  await page.waitForSelector("[data-testid=results] li, [data-testid=notice]");
  const notice = await page.$("[data-testid=notice]");
  assert.equal(notice && (await notice.textContent()), null);
}

/** Waits for the notice and resolves to its code and text. */
export async function noticed(page) {
  const notice = await page.waitForSelector("[data-testid=notice]");
  return { code: await notice.getAttribute("data-code"), text: (await notice.innerText()).replaceAll(/\s+/g, " ") };
}

/** Waits for every ranking that answers `query` (`item:7`, `image:NAME`). */
export async function answered(page, query, rankings = 1) {
  await page.waitForFunction(
    ([query, rankings]) => {
      const all = [...document.querySelectorAll("[data-testid=ranking]")];
      return all.length === rankings && all.every(({ dataset, ariaBusy }) => dataset.query === query && ariaBusy === "false");
    },
    [query, rankings],
  );
}

/** Chooses a file as a reader would. */
export const upload = (page, name, buffer) =>
  page.setInputFiles("[data-testid=file]", { name, mimeType: "application/octet-stream", buffer });

/** What is wrong with the page as it stands, according to axe. */
export async function audit(page) {
  // A page that fades has the contrast of the moment.
  await page.evaluate(() => {
    const ending = document.getAnimations().filter((animation) => animation.effect.getComputedTiming().endTime !== Infinity);
    return Promise.allSettled(ending.map(({ finished }) => finished));
  });
  // Through the debugger, which the page's security policy does not bind.
  await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
  const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const { violations } = await page.evaluate((runOnly) => globalThis.axe.run(document, { runOnly }), rules);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ target, failureSummary }) => `${target} ${failureSummary}`).join("; ")}`);
}
