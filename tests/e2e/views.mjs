// Serves the views that need no engine, and opens them in headless Chromium. `openViews` needs no binary
// and no bundle.
//
// Environment: CHROMIUM is the browser (default: /usr/bin/chromium), and AKIN_PAGE a built page (default:
// www/dist where it is, else the page that the mock server builds).
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, normalize } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".woff2": "font/woff2",
};
const TIMEOUT = 20_000;
const FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--no-first-run",
  "--disable-quic",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Serves a folder. Resolves to its address and a function that stops the server. */
function serveFolder(folder) {
  const server = createServer((request, response) => {
    const path = normalize(
      new URL(request.url, "http://localhost").pathname,
    ).replace(/\/$/, "/index.html");
    const file = join(folder, path);
    if (!file.startsWith(folder) || !existsSync(file))
      return response.writeHead(404).end();
    response
      .writeHead(200, {
        "content-type": TYPES[extname(file)] ?? "application/octet-stream",
      })
      .end(readFileSync(file));
  });
  return new Promise((resolve) =>
    server.listen(0, "127.0.0.1", () =>
      resolve({
        address: `http://localhost:${server.address().port}/`,
        stop: () => server.close(),
      }),
    ),
  );
}

async function servePage() {
  const page =
    process.env.AKIN_PAGE ??
    fileURLToPath(new URL("../../www/dist", import.meta.url));
  if (existsSync(join(page, "index.html"))) return serveFolder(page);
  const { serveMock } = await import("../../www/mock/serve.mjs");
  return serveMock(0);
}

/** As `openSite` of site.mjs: `visit` opens a new page, calls `check`, and checks what every page must do. */
export async function openViews() {
  const { address, stop } = await servePage();
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: FLAGS,
  });
  after(async () => {
    await browser.close();
    stop();
  });

  async function visit(
    { query = "", width = 1280, scheme = "light", touch = false, before },
    check,
  ) {
    const context = await browser.newContext({
      viewport: { width, height: 900 },
      colorScheme: scheme,
      hasTouch: touch,
    });
    const problems = [];
    context.on("request", (request) => {
      if (
        !request.url().startsWith(address) &&
        !/^(blob|data):/.test(request.url())
      )
        problems.push(`a request to another origin: ${request.url()}`);
    });
    context.on("weberror", (error) =>
      problems.push(`thrown: ${error.error().message}`),
    );
    try {
      const page = await context.newPage();
      page.setDefaultTimeout(TIMEOUT);
      await before?.(context);
      await page.goto(address + query);
      await check(page);
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - innerWidth,
      );
      if (overflow > 0)
        problems.push(
          `the page is ${overflow} px wider than the window of ${width} px`,
        );
    } finally {
      await context.close();
    }
    assert.deepEqual(problems, []);
  }
  return { address, visit };
}

/** The problems that axe finds on the page, also inside of shadow roots. */
export async function axeProblems(page) {
  // The contrast is right only after all transitions have ended.
  await page.evaluate(() => {
    const ending = document
      .getAnimations()
      .filter(
        (animation) =>
          animation.effect.getComputedTiming().endTime !== Infinity,
      );
    return Promise.allSettled(ending.map(({ finished }) => finished));
  });
  // The debugger may run the script, which the page's security policy would forbid.
  await page.evaluate(
    readFileSync(
      createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
      "utf8",
    ),
  );
  const rules = [
    "wcag2a",
    "wcag2aa",
    "wcag21a",
    "wcag21aa",
    "wcag22aa",
    "best-practice",
  ];
  const { violations } = await page.evaluate(
    (runOnly) => globalThis.axe.run(document, { runOnly }),
    rules,
  );
  return violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes
        .slice(0, 3)
        .map(({ target, failureSummary }) => `${target} ${failureSummary}`)
        .join("; ")}`,
  );
}
