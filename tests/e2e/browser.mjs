// The browser of the tests, and what every page of akin must do.
//
// Environment: CHROMIUM is the browser (default: /usr/bin/chromium).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

/** Flags that stop Chromium's own requests. */
const QUIET = [
  "--headless=new",
  "--no-sandbox",
  "--no-first-run",
  "--disable-quic",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts the browser, with more flags. */
export const launchBrowser = (flags = []) =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [...QUIET, ...flags],
  });

/**
 * A function that opens a new page of `address` and waits until it is `ready`, calls `check` with it and the addresses
 * that it has requested, and then checks what every page must do: request only its own origin, throw nothing, and fit the
 * width of the window.
 */
export const visitor = (browser, address, defaults) =>
  async function visit(options, check) {
    const {
      query = "",
      width = 1280,
      scheme = "light",
      touch = false,
      before,
      ready,
      wait = true,
      timeout,
      serviceWorkers = "allow",
    } = { ...defaults, ...options };
    const context = await browser.newContext({
      viewport: { width, height: 900 },
      colorScheme: scheme,
      hasTouch: touch,
      serviceWorkers,
    });
    const [problems, requests] = [[], []];
    context.on("request", (request) => {
      const url = request.url();
      requests.push(url);
      if (!url.startsWith(address) && !/^(blob|data):/.test(url))
        problems.push(`a request to another origin: ${url}`);
    });
    context.on("weberror", (error) =>
      problems.push(`thrown: ${error.error().message}`),
    );
    try {
      const page = await context.newPage();
      page.setDefaultTimeout(timeout);
      page.on("websocket", (socket) =>
        problems.push(`a socket to ${socket.url()}`),
      );
      await before?.(context);
      await page.goto(address + query);
      if (wait) await ready?.(page);
      await check(page, requests);
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
  };

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
