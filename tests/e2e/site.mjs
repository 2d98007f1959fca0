// Serves the page with `akin serve` and opens it in headless Chromium.
//
// Environment: AKIN is the binary, AKIN_FIXTURE the folder that fixture.mjs has filled, CHROMIUM the
// browser (default: /usr/bin/chromium), and AKIN_PAGE a built page (default: www/dist).
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { launchBrowser, visitor } from "./browser.mjs";

export { axeProblems } from "./browser.mjs";

const requiredVariable = (name) => {
  const value = process.env[name];
  if (!value)
    throw new Error(
      `${name} is not set: run tests/run, or set it as the first lines of tests/e2e/site.mjs describe`,
    );
  return value;
};

export const akin = requiredVariable("AKIN");
export const fixture = (...path) =>
  join(requiredVariable("AKIN_FIXTURE"), ...path);
export const bundle = JSON.parse(
  readFileSync(fixture("bundle/bundle.json"), "utf8"),
);

/** JSON in the form of RFC 8785, of which the digest of a bundle is made. */
export const canonical = (value) => {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)}}`;
};

/** Flags that give the browser WebGPU in software. */
const FLAGS = {
  webgpu: ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"],
  cpu: [],
};

/** Flags beside those of `webgpu` without which a software adapter loses its device when it draws on a canvas. */
export const WEBGPU_CANVAS = [
  "--enable-features=Vulkan",
  "--use-vulkan=swiftshader",
  "--use-angle=swiftshader",
  "--enable-gpu",
  "--ignore-gpu-blocklist",
];

/** The timeout of every step in milliseconds. It is long because the software adapter compiles every shader on the CPU. */
const TIMEOUT = 180_000;

/** The built page. */
export const pageFolder =
  process.env.AKIN_PAGE ??
  fileURLToPath(new URL("../../www/dist", import.meta.url));

/** Starts `akin serve` with bundles of the fixture, or with those at absolute paths, and with options. Resolves to its address and a function that stops it. */
export function serve(names = ["bundle", "half"], options = []) {
  const bundles = names.map((name) => resolve(fixture(), name));
  // `--page` keeps `akin serve` from building the page.
  const server = spawn(
    akin,
    ["serve", ...bundles, ...options, "--port", "0", "--page", pageFolder],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let stderr = "";
  server.stderr.on("data", (text) => (stderr += text));
  return new Promise((fulfil, reject) => {
    server.once("error", reject);
    server.once("exit", (code) =>
      reject(new Error(`akin serve ended with ${code}: ${stderr}`)),
    );
    server.stdout.once("data", (text) =>
      fulfil({
        address: String(text).trim(),
        stop: () => server.kill("SIGINT"),
      }),
    );
  });
}

export const launch = (backend, flags = []) =>
  launchBrowser([...FLAGS[backend], ...flags]);

/** A site for one test file, or another one at the address `given`, and the `visitor` of its pages. */
export async function openSite(
  backend,
  flags = [],
  bundles = undefined,
  given = null,
) {
  const { address, stop } = given
    ? { address: given, stop() {} }
    : await serve(bundles);
  const browser = await launch(backend, flags);
  after(async () => {
    await browser.close();
    stop();
  });

  const visit = visitor(browser, address, {
    ready: waitForResults,
    timeout: TIMEOUT,
    // They would answer requests before a test's own routes.
    serviceWorkers: "block",
  });
  return { address, visit };
}

/** Runs `code` in the engine's worker before its own code: for `before` of a visit. */
export const inWorker = (code) => (context) =>
  context.route("**/build/worker.js", async (route) => {
    const response = await route.fetch();
    await route.fulfill({
      response,
      body: `{${code}}\n${await response.text()}`,
    });
  });

/** Keeps the graphics device that the engine gets as `akinDevice`, so that a test can take it away. */
export const keepDevice = inWorker(`
  const request = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function (...args) {
    return (self.akinDevice = await request.apply(this, args));
  };
`);

/** Waits until the page shows an answer. Fails with the text of an error that the page shows instead. */
export async function waitForResults(page) {
  await page.waitForSelector("[data-testid=results] li, [data-testid=notice]");
  const notice = await page.$("[data-testid=notice]");
  assert.equal(notice && (await notice.textContent()), null);
}

/** Waits for an error notice. Resolves to its code and text. */
export async function waitForNotice(page) {
  const notice = await page.waitForSelector("[data-testid=notice]");
  return {
    code: await notice.getAttribute("data-code"),
    text: (await notice.innerText()).replaceAll(/\s+/g, " "),
  };
}

/** Waits until `rankings` rankings answer `query` (`item:7`, `image:NAME`). */
export async function waitForRankings(page, query, rankings = 1) {
  await page.waitForFunction(
    ([query, rankings]) => {
      const all = [...document.querySelectorAll("[data-testid=ranking]")];
      return (
        all.length === rankings &&
        all.every(
          ({ dataset, ariaBusy }) =>
            dataset.query === query && ariaBusy === "false",
        )
      );
    },
    [query, rankings],
  );
}

/** Chooses a file as a reader would. */
export const upload = (page, name, buffer) =>
  page.setInputFiles("[data-testid=file]", {
    name,
    mimeType: "application/octet-stream",
    buffer,
  });
