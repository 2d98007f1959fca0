// Every view of the page and every part of the lesson, with what to do before it is looked at. pictures.mjs takes
// pictures of them, and layout.test.mjs reads them.
//
// Environment: AKIN_ADDRESS is a page that is already served. Otherwise, if AKIN and AKIN_FIXTURE are set as in
// site.mjs, `akin serve` shows the real page and bundle. Otherwise it is the mock page of `npm --prefix www run mock`.
// CHROMIUM is the browser (default: /usr/bin/chromium). The training ground is there where the page has its module;
// the mock page has it with the option `--training`.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { launchBrowser } from "./browser.mjs";

/** Chromium's own moving picture stands for a camera. */
const CAMERA = [
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
];

async function servePage() {
  const { AKIN_ADDRESS, AKIN, AKIN_FIXTURE } = process.env;
  if (AKIN_ADDRESS) return { address: AKIN_ADDRESS, stop: () => undefined };
  if (AKIN && AKIN_FIXTURE)
    return (await import("./site.mjs")).serve(["bundle", "half", "inside"]);
  return (await import("../../www/mock/serve.mjs")).serveMock(0);
}

/** Serves the page. `views` are `{ name, query, act }`, and `visit(query, viewport, act)` opens a page of its own. */
export async function openEveryView() {
  const { address, stop } = await servePage();
  const browser = await launchBrowser(CAMERA);

  /** Opens a page of its own for `act`. Resolves to the errors that it threw. */
  async function visit(query, viewport, act) {
    const context = await browser.newContext({
      viewport,
      serviceWorkers: "block",
    });
    const problems = [];
    context.on("weberror", (error) => problems.push(error.error().message));
    try {
      const page = await context.newPage();
      page.setDefaultTimeout(60_000);
      await page.goto(new URL(query, address).href);
      await act(page);
    } finally {
      await context.close();
    }
    return problems;
  }

  const close = async () => {
    await browser.close();
    await stop();
  };
  return { views: await viewsOf(address, visit), visit, close };
}

/** The values of an attribute on the page of a view: the names of its examples. */
async function examples(visit, view, attribute) {
  let names = [];
  await visit(`?view=${view}`, null, async (page) => {
    const buttons = page.locator(`[${attribute}]`);
    await buttons.first().waitFor();
    names = await buttons.evaluateAll(
      (all, attribute) => all.map((button) => button.getAttribute(attribute)),
      attribute,
    );
  });
  return names;
}

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

async function viewsOf(address, visit) {
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
    ...(await examples(visit, "lesson", "data-part")).map((part) => [
      `lesson-${part}`,
      `?view=lesson&part=${part}`,
      visible("akin-lesson .item"),
    ]),
    ...(await examples(visit, "playground", "data-preset")).map((name) => [
      `playground-${name}`,
      "?view=playground",
      click(`[data-preset=${name}]`),
    ]),
    ...(await examples(visit, "steps", "data-preset")).map((name) => [
      `steps-${name}`,
      `?view=steps&preset=${name}`,
      visible("akin-steps .panel"),
    ]),
    ...(hasTraining
      ? (await examples(visit, "training", "data-example")).map((name) => [
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
    ["map-class-means", "?view=map&points=means", visible("akin-encoders")],
    ...ancestors.map((query, index) => [
      `map-ancestors-${index + 1}`,
      query,
      visible("akin-map canvas.proxies[data-proxies]"),
    ]),
    ["embed", "embed.html", visible("akin-steps .panel")],
  ];
  return views.map(([name, query, act]) => ({ name, query, act }));
}
