// The look into a model: map, tree, matrix of classes, and two encoders, with the mock engine and its invented bundle.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { serveMock } from "../../www/mock/serve.mjs";
import { axeProblems, launchBrowser, visitor } from "./browser.mjs";

const mock = await serveMock(0);
const browser = await launchBrowser();
after(async () => {
  await browser.close();
  await mock.stop();
});

const open = visitor(browser, mock.address, {
  ready: (page) => page.waitForSelector("[data-testid=map][data-visible]"),
  timeout: 20_000,
});

/** Opens the view in a new page. */
const visit = ({ query = "", ...options }, check) =>
  open({ query: `?view=map${query}`, ...options }, check);

const address = (page) => new URL(page.url()).searchParams;
const waitForAddress = (page, name, value) =>
  page.waitForFunction(
    ([name, value]) => new URL(location.href).searchParams.get(name) === value,
    [name, value],
  );
const visible = async (page) =>
  Number(await page.getAttribute("[data-testid=map]", "data-visible"));

test("a reader finds a point by keyboard, makes it the query, and searches with it", () =>
  visit({}, async (page) => {
    await page.focus("[data-testid=map]");
    await page.keyboard.press("ArrowRight");
    const status = page.locator("[data-testid=map-status]");
    await page.waitForFunction(
      (said) => said.textContent.trim() !== "",
      await status.elementHandle(),
    );
    const before = await status.innerText();
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction(
      ([said, before]) => said.textContent.trim() !== before,
      [await status.elementHandle(), before],
    );
    await page.keyboard.press("Enter");
    await page.waitForSelector("[data-testid=nearest] li[data-item]");
    await page.waitForURL(/[?&]q=\d+/);
    const query = address(page).get("q");
    assert.equal(
      await page.locator("[data-testid=nearest] li[data-item]").count(),
      12,
    );
    await page.getByRole("link", { name: "Search with it" }).click();
    await page.waitForSelector(
      `[data-testid=ranking][data-query="item:${query}"]`,
    );
  }));

test("zooming in shows pictures, and the whole map comes back", () =>
  visit({}, async (page) => {
    const all = await visible(page);
    await page.focus("[data-testid=map]");
    await page.keyboard.press("ArrowRight");
    for (let step = 0; step < 6; step++) await page.keyboard.press("+");
    await page.waitForSelector("[data-testid=map][data-pictures=true]");
    assert.ok((await visible(page)) < all);
    await page.keyboard.press("0");
    await page.waitForSelector(
      `[data-testid=map][data-pictures=false][data-visible="${all}"]`,
    );
  }));

test("the tree chooses classes by keyboard, and the address keeps the class", () =>
  visit({}, async (page) => {
    await page.focus("[role=treeitem][tabindex='0']");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    const chosen = page.locator("[role=treeitem][aria-selected=true]");
    const items = await chosen.getAttribute("data-items");
    assert.equal(
      await page.getAttribute("[data-testid=chosen]", "data-count"),
      items,
    );
    const level = await chosen.getAttribute("data-level");
    assert.equal(level, "2");
    await waitForAddress(
      page,
      "class",
      `2.${await chosen.getAttribute("data-class")}`,
    );
    await page.reload();
    await page.waitForSelector(`[data-testid=chosen][data-count="${items}"]`);
    await page.click("[data-testid=clear-choice]");
    await page.waitForSelector("[data-testid=chosen]", { state: "detached" });
  }));

/** Draws a lasso along the edges of the map, at a distance that is a share of its sides. */
async function lasso(page, margin) {
  await page.click("[data-testid=lasso]");
  const { x, y, width, height } = await page
    .locator("[data-testid=map]")
    .boundingBox();
  const corners = [
    [margin, margin],
    [1 - margin, margin],
    [1 - margin, 1 - margin],
    [margin, 1 - margin],
  ].map(([u, v]) => [x + u * width, y + v * height]);
  await page.mouse.move(...corners[0]);
  await page.mouse.down();
  for (const corner of corners) await page.mouse.move(...corner, { steps: 3 });
  await page.mouse.up();
}

test("a lasso chooses the points inside it", () =>
  visit({}, async (page) => {
    await lasso(page, 0.02);
    const all = await page.getAttribute("[data-testid=map]", "data-points");
    assert.equal(
      await page.getAttribute("[data-testid=chosen]", "data-count"),
      all,
    );
  }));

test("a tap shows an item, and a second tap makes it the query", () =>
  visit({ width: 390, touch: true, query: "&class=3.4" }, async (page) => {
    await page.focus("[data-testid=map]");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector(".card");
    // A finger reaches only what is in the window.
    const map = page.locator("[data-testid=map]");
    await map.evaluate((canvas) =>
      canvas.scrollIntoView({ block: "center", behavior: "instant" }),
    );
    const { x, y, width, height } = await map.boundingBox();
    const [u, v] = await page.evaluate(() => {
      const map = document.querySelector("akin-map");
      return [
        map.painter.screen[2 * map.navigation.focused],
        map.painter.screen[2 * map.navigation.focused + 1],
      ];
    });
    assert.ok(u > 0 && v > 0 && u < width && v < height);
    await page.touchscreen.tap(x + u, y + v);
    await page.touchscreen.tap(x + u, y + v);
    await page.waitForSelector("[data-testid=nearest] li[data-item]");
  }));

test("the Poincaré disk moves its focus by dragging", () =>
  visit({ query: "&map=Poincaré disk" }, async (page) => {
    const centre = () =>
      page.evaluate(
        () => document.querySelector("akin-map").navigation.view.centre,
      );
    assert.deepEqual(await centre(), [0, 0]);
    const { x, y, width, height } = await page
      .locator("[data-testid=map]")
      .boundingBox();
    await page.mouse.move(x + width / 2, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width / 2 + 80, y + height / 2, { steps: 4 });
    await page.mouse.up();
    const [re, im] = await centre();
    assert.ok(re < -0.2 && Math.abs(im) < 1e-6, `${re} ${im}`);
  }));

/** The classes of the finest level, as the tree has them when it is open. */
const species = (page) =>
  page.evaluate(() =>
    document.querySelector("akin-map").classes.tree.levels[2].map((node) => ({
      id: node.id,
      name: node.name,
      items: node.items.length,
    })),
  );

test("class means stand in place of the items, by keyboard and in the address", () =>
  visit({ query: "&map=UMAP" }, async (page) => {
    await page.selectOption("[data-testid=map-points]", "means");
    const classes = await species(page);
    await page.waitForSelector(
      `[data-testid=map][data-points="${classes.length}"]`,
    );
    await waitForAddress(page, "points", "means");
    assert.match(
      await page.innerText(".caption"),
      /Each point is the mean embedding of one /,
    );

    await page.focus("[data-testid=map]");
    await page.keyboard.press("ArrowRight");
    const card = page.locator(".card");
    await card.waitFor();
    const id = Number(await card.getAttribute("data-class"));
    const { name, items } = classes.find((node) => node.id === id);
    const says = await page.innerText("[data-testid=map-status]");
    assert.ok(says.startsWith(`${name}, `), says);
    assert.ok(says.includes(`, ${items} pictures`), says);
    assert.equal(await card.locator("akin-thumb").count(), Math.min(4, items));

    await page.keyboard.press("Enter");
    await waitForAddress(page, "class", `3.${id}`);
    assert.equal(
      await page.getAttribute("[data-testid=chosen]", "data-count"),
      String(items),
    );
    // Keys still reach the other classes.
    await page.keyboard.press("ArrowDown");
    await page.waitForSelector(`.card:not([data-class="${id}"])`);
    // The tree shows the class.
    await page.waitForSelector(
      `[role=treeitem][aria-selected=true][data-level="3"][data-class="${id}"]`,
    );

    await page.reload();
    await page.waitForSelector(
      `[data-testid=map][data-points="${classes.length}"]`,
    );
    assert.equal(await page.inputValue("[data-testid=map-points]"), "means");
    // A picture of the class becomes the query, and the focus stays on its class.
    await page.locator("[data-testid=chosen] li button").first().click();
    await page.waitForSelector("[data-testid=nearest] li[data-item]");
    assert.equal(
      await page.locator(".card").getAttribute("data-class"),
      String(id),
    );
    assert.match(
      await page.innerText("[aria-labelledby=nearest-title] header"),
      /circle around its class/,
    );
    assert.deepEqual(await axeProblems(page), []);
  }));

test("a mouse chooses the class of a mean, a lasso all items of the means in it", () =>
  visit({ query: "&points=means&colour=2" }, async (page) => {
    const classes = await species(page);
    await page.waitForSelector(
      `[data-testid=map][data-points="${classes.length}"]`,
    );
    const map = page.locator("[data-testid=map]");
    const { x, y } = await map.boundingBox();
    const [u, v] = await page.evaluate(() => {
      const { screen } = document.querySelector("akin-map").painter;
      return [screen[0], screen[1]];
    });
    await page.mouse.click(x + u, y + v);
    await page.waitForURL(/[?&]class=3\.\d+/);
    await page.mouse.click(x + u, y + v);
    await page.waitForSelector("[data-testid=chosen]", { state: "detached" });

    await lasso(page, 0.01);
    const all = classes.reduce((sum, { items }) => sum + items, 0);
    assert.equal(
      await page.getAttribute("[data-testid=chosen]", "data-count"),
      String(all),
    );

    // Zoomed in, a mean stays a point, for it is no picture.
    await page.focus("[data-testid=map]");
    for (let step = 0; step < 6; step++) await page.keyboard.press("+");
    await page.waitForFunction(
      () => document.querySelector("akin-map").navigation.view.zoom > 5,
    );
    assert.equal(await map.getAttribute("data-pictures"), "false");
  }));

test("a map without class means shows its items", () =>
  visit({ query: "&map=Poincaré disk&points=means" }, async (page) => {
    const items = await page.evaluate(
      () => document.querySelector("akin-map").source.collection.count,
    );
    assert.equal(
      await page.getAttribute("[data-testid=map]", "data-points"),
      String(items),
    );
    const choice = page.locator("[data-testid=map-points]");
    assert.equal(await choice.inputValue(), "items");
    assert.ok(await choice.locator("option[value=means]").isDisabled());
  }));

test("a cell of the matrix names its classes and chooses one on the map", () =>
  visit({}, async (page) => {
    await page.focus("[data-testid=affinity]");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.match(
      await page.innerText("[data-testid=affinity-status]"),
      / and .*: −?\d\.\d{3}/,
    );
    await page.keyboard.press("Enter");
    await page.waitForSelector("[role=treeitem][aria-selected=true]");
    await page.waitForURL(/[?&]class=3\.\d+/);
  }));

test("two encoders are compared on the query where they differ", () =>
  visit({}, async (page) => {
    await page.selectOption("[data-testid=difference-choice]", "first");
    const card = page
      .locator("[data-testid=difference-list][data-list=first] li button")
      .first();
    await card.waitFor();
    const differences = await page
      .locator("[data-testid=difference-list] strong")
      .allInnerTexts();
    const gains = differences.map((text) => -Number(text.replace("−", "-")));
    assert.ok(
      gains.every((gain) => gain >= 0) &&
        gains.every((gain, at) => at === 0 || gain <= gains[at - 1]),
      `${gains}`,
    );
    await card.click();
    await page.waitForSelector("[data-testid=difference][aria-busy=false]");
    assert.match(
      await page.innerText("[data-testid=difference-text]"),
      /At rank \d+, .* has .*, and .* has|same kinship/,
    );
    assert.equal(await page.locator("[data-testid=difference] ol").count(), 2);
    await waitForAddress(page, "list", "first");

    await page.selectOption(
      "[data-testid=difference-choice]",
      "mistakes-second",
    );
    const first = await page
      .locator("[data-testid=difference-list] li")
      .first()
      .innerText();
    assert.match(first, /stranger/);
  }));

test("a link shows the same map to another reader", () =>
  visit(
    { query: "&encoder=NormSoftmax&map=Poincaré disk&colour=2&q=7" },
    async (page) => {
      assert.equal(
        await page.inputValue("[data-testid=map-name]"),
        "Poincaré disk",
      );
      assert.equal(await page.inputValue("[data-testid=map-colour]"), "2");
      await page.waitForSelector("[data-testid=nearest] li[data-item]");
      await page.selectOption("[data-testid=map-colour]", "0");
      await page.waitForSelector("[aria-label='Kinship to the query'] li");
      await waitForAddress(page, "colour", "0");
    },
  ));

for (const scheme of ["light", "dark"]) {
  for (const width of [360, 1280]) {
    test(`axe finds nothing at ${width} px in ${scheme}`, () =>
      visit(
        { scheme, width, query: "&q=30&colour=0&class=1.0&list=first&look=3" },
        async (page) => {
          await page.waitForSelector(
            "[data-testid=difference][aria-busy=false]",
          );
          assert.deepEqual(await axeProblems(page), []);
        },
      ));
  }
}
