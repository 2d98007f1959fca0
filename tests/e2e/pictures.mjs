// Takes a picture of every view, at three widths and in both themes, to be looked at. Usage:
//
//   node tests/e2e/pictures.mjs FOLDER [VIEW…]
//
// The pictures are FOLDER/VIEW-WIDTH-THEME.png. VIEW is the beginning of a name, such as `lesson` or
// `playground-fig8`; without it, every view is taken. Each prints a line, with what is wrong if it is too wide or
// throws an error.
//
// Environment: AKIN_ADDRESS is a page that is already served. Otherwise, if AKIN and AKIN_FIXTURE are set as in
// site.mjs, `akin serve` shows the real page and bundle. Otherwise it is the mock page of `npm --prefix www run mock`.
// CHROMIUM is the browser (default: /usr/bin/chromium). The training ground is taken where the page has its module;
// the mock page has it with the option `--training`.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const WIDTHS = [360, 1280, 1920];
const THEMES = ["light", "dark"];
const FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--no-first-run",
  "--disable-quic",
  "--disable-background-networking",
  // Chromium's own moving picture stands for a camera.
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
];

const [folder, ...wanted] = process.argv
  .slice(2)
  .filter((argument) => argument !== "--training");
if (!folder) throw new Error("usage: node pictures.mjs FOLDER [VIEW…]");
mkdirSync(folder, { recursive: true });

async function servePage() {
  const { AKIN_ADDRESS, AKIN, AKIN_FIXTURE } = process.env;
  if (AKIN_ADDRESS) return { address: AKIN_ADDRESS, stop: () => undefined };
  if (AKIN && AKIN_FIXTURE)
    return (await import("./site.mjs")).serve(["bundle", "half", "inside"]);
  return (await import("../../www/mock/serve.mjs")).serveMock(0);
}

const { address, stop } = await servePage();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: FLAGS,
});

/** Opens a page of its own for `act`. Resolves to what is wrong with it. */
async function visit(query, width, act) {
  const context = await browser.newContext({
    viewport: { width, height: width < 500 ? 780 : 900 },
    serviceWorkers: "block",
  });
  const problems = [];
  context.on("weberror", (error) => problems.push(error.error().message));
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(new URL(query, address).href);
    await act(page);
    const excess = await page.evaluate(
      () => document.documentElement.scrollWidth - innerWidth,
    );
    if (excess > 0) problems.push(`${excess} px too wide`);
  } catch (error) {
    problems.push(String(error).split("\n")[0]);
  } finally {
    await context.close();
  }
  return problems;
}

/** The values of an attribute on the page of a view: the names of its examples. */
async function examples(view, attribute) {
  let names = [];
  await visit(`?view=${view}`, 1280, async (page) => {
    const buttons = page.locator(`[${attribute}]`);
    await buttons.first().waitFor();
    names = await buttons.evaluateAll(
      (all, attribute) => all.map((button) => button.getAttribute(attribute)),
      attribute,
    );
  });
  return names;
}

// --- The views ---------------------------------------------------------------------------------

const testImage = (name) =>
  fileURLToPath(new URL(`../../core/tests/images/${name}`, import.meta.url));
const results = (page) => page.waitForSelector("[data-testid=results] li");
const upload = async (page) => {
  await results(page);
  await page.setInputFiles("[data-testid=file]", testImage("rgb.jpg"));
  await page.waitForSelector("[data-testid=ranking][data-query^=image]");
};
const ownGallery = async (page) => {
  await results(page);
  await page.click("[data-testid=own-entry] summary");
  const file = (name, image) => ({
    name,
    mimeType: "image/jpeg",
    buffer: readFileSync(testImage(image)),
  });
  await page.setInputFiles("[data-testid=own-files]", [
    file("first.jpg", "rgb.jpg"),
    file("second.jpg", "turned.jpg"),
    file("third.jpg", "progressive.jpg"),
    { name: "broken.jpg", mimeType: "image/jpeg", buffer: Buffer.from("no") },
  ]);
  await page.waitForSelector("[data-testid=own]");
  await results(page);
};
const look = async (page) => {
  await results(page);
  await page.click("[data-look-item]");
  await page.waitForSelector("akin-look [data-testid=look][data-busy=false]");
  await page.focus("akin-look [data-testid=look-query]");
};
const camera = async (page) => {
  await results(page);
  await page.click("[data-testid=take-photo]");
  await page.waitForFunction(
    () => document.querySelector(".camera video")?.videoWidth > 0,
  );
};
const training = async (page) => {
  const rest = "[data-testid=training][data-state=ready][data-busy=false]";
  await page.waitForSelector(rest);
  await page.locator("[data-control=speed]").selectOption("fast");
  await page.locator("[data-testid=run]").click();
  await page.waitForFunction(
    () =>
      document
        .querySelector("akin-training")
        .shadowRoot.querySelector("[data-testid=training]").dataset.step >= 60,
  );
  await page.locator("[data-testid=run]").click();
  await page.waitForSelector(rest);
};
const click = (selector) => (page) => page.locator(selector).click();
const visible = (selector) => (page) => page.waitForSelector(selector);

const { encoders } = await (
  await fetch(new URL("bundle/bundle.json", address))
).json();
const [first, second = first] = encoders.map(({ name }) =>
  encodeURIComponent(name),
);
const { bundles } = await (
  await fetch(new URL("bundles.json", address))
)
  .json()
  .catch(() => ({ bundles: [] }));
/** The address of each map with learned ancestors. */
const ancestors = [];
for (const { path } of bundles) {
  const bundle = await (
    await fetch(new URL(`${path}/bundle.json`, address))
  ).json();
  for (const { name: encoder, maps = [] } of bundle.encoders)
    for (const { name: map, proxies } of maps)
      if (proxies)
        ancestors.push(
          `?${new URLSearchParams({ view: "map", bundle: path, encoder, map, proxies: "all" })}`,
        );
}
const hasTraining = (
  await fetch(new URL("akin-training-ground_bg.wasm", address), {
    method: "HEAD",
  })
).ok;

/** Name, address and action of each view. */
const views = [
  ["search", "", results],
  ["search-two", `?encoder=${first}&compare=${second}&q=40`, results],
  ["search-look", "?q=40", look],
  ["search-own-picture", "", upload],
  ["search-own-gallery", "", ownGallery],
  ["search-camera", "", camera],
  ["search-no-bundle", "?bundle=nowhere", visible("[data-testid=notice]")],
  ...bundles
    .slice(1)
    .map(({ path }, index) => [
      `search-gallery-${index + 2}`,
      `?bundle=${path}`,
      results,
    ]),
  ...Array.from({ length: 8 }, (_, index) => [
    `lesson-${index + 1}`,
    `?view=lesson&step=${index + 1}`,
    visible("akin-lesson [data-testid=task]"),
  ]),
  ...(await examples("playground", "data-preset")).map((name) => [
    `playground-${name}`,
    "?view=playground",
    click(`[data-preset=${name}]`),
  ]),
  ...(await examples("steps", "data-preset")).map((name) => [
    `steps-${name}`,
    `?view=steps&preset=${name}`,
    visible("akin-steps .panel"),
  ]),
  ...(hasTraining
    ? (await examples("training", "data-example")).map((name) => [
        `training-${name}`,
        "?view=training",
        async (page) => {
          await click(`[data-example=${name}]`)(page);
          await training(page);
        },
      ])
    : []),
  ["map", "?view=map", visible("akin-encoders")],
  [
    "map-query",
    `?view=map&q=40&colour=0&look=40&encoder=${second}`,
    visible("akin-encoders"),
  ],
  ...ancestors.map((query, index) => [
    `map-ancestors-${index + 1}`,
    query,
    visible("akin-map canvas.proxies[data-proxies]"),
  ]),
  ["embed", "embed.html", visible("akin-steps .panel")],
];

// -------------------------------------------------------------------------------------------------

/** Takes the pictures of a view at a width. Both themes are of one visit. */
async function take([name, query, act], width) {
  const problems = await visit(query, width, async (page) => {
    await act(page);
    // A page that has lost its bundle may keep a connection open.
    await page
      .waitForLoadState("networkidle", { timeout: 5000 })
      .catch(() => undefined);
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme });
      await page.waitForTimeout(300);
      await page.screenshot({
        path: join(folder, `${name}-${width}-${theme}.png`),
        // A dialog covers the window, not the whole page.
        fullPage: (await page.$("dialog[open]")) === null,
        animations: "disabled",
      });
    }
  });
  console.log([`${name}-${width}`, ...problems].join(": "));
  return problems.length;
}

let wrong = 0;
for (const view of views) {
  if (wanted.length > 0 && !wanted.some((name) => view[0].startsWith(name)))
    continue;
  for (const width of WIDTHS) wrong += await take(view, width);
}
await browser.close();
await stop();
process.exit(wrong === 0 ? 0 : 1);
