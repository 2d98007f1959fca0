// The frame of the page: its views, their addresses, and the elements in a page of somebody else.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axeProblems, bundle, openSite } from "./site.mjs";

const { visit } = await openSite("cpu");
/** A view that needs no engine. */
const PLAYGROUND = { query: "?view=playground", wait: false };

const link = (page, title) => page.locator("#views a", { hasText: title });
const shown = (page) =>
  page.$$eval("#main > .view:not([hidden])", (views) =>
    views.map(({ id }) => id),
  );
const parameter = (page, name) => new URL(page.url()).searchParams.get(name);

test("a view opens at its own address, without the engine and the bundle", () =>
  visit(PLAYGROUND, async (page, requests) => {
    await page.waitForSelector("akin-playground [data-item]");
    assert.deepEqual(await shown(page), ["view-playground"]);
    assert.equal(await page.title(), "Playground · akin");
    assert.equal(
      await link(page, "Playground").getAttribute("aria-current"),
      "page",
    );
    const forSearch = requests.filter((url) => /akin-web|bundle\//.test(url));
    assert.deepEqual(forSearch, []);
  }));

test("links and the browser's buttons change the view, its title and the focus", () =>
  visit(PLAYGROUND, async (page) => {
    await page.waitForSelector("akin-playground [data-item]");
    await link(page, "Steps").click();
    await page.waitForSelector("akin-steps .item");
    assert.deepEqual(await shown(page), ["view-steps"]);
    assert.equal(parameter(page, "view"), "steps");
    assert.equal(
      await page.evaluate(() => document.activeElement.textContent),
      "Steps and gradients",
    );
    await page.goBack();
    await page.waitForFunction(() => document.title === "Playground · akin");
    assert.deepEqual(await shown(page), ["view-playground"]);
    assert.equal(
      await page.evaluate(() => document.activeElement.textContent),
      "The playground",
    );
    await page.goForward();
    await page.waitForFunction(() => document.title === "Steps · akin");
    assert.deepEqual(await shown(page), ["view-steps"]);
  }));

test("a view is as the reader left it, also by its link, and another reader sees the same", () =>
  visit(PLAYGROUND, async (page) => {
    const scores = () =>
      page.$$eval("akin-playground [data-headline]", (cells) =>
        cells.map(({ dataset }) => dataset.value),
      );
    await page.waitForSelector("akin-playground [data-item]");
    const first = await scores();
    await page.locator("akin-playground [data-by='1']").first().click();
    await page.waitForFunction(() => location.search !== "?view=playground");
    const [moved, address] = [await scores(), page.url()];
    assert.notDeepEqual(moved, first);
    await link(page, "Steps").click();
    await page.waitForSelector("akin-steps .item");
    await link(page, "Playground").click();
    await page.waitForFunction(() => document.title === "Playground · akin");
    assert.equal(page.url(), address);
    assert.deepEqual(await scores(), moved);
    await page.reload();
    await page.waitForSelector("akin-playground [data-item]");
    assert.deepEqual(await scores(), moved);
    assert.ok(page.url().length < 2000);
  }));

test("an address that names no view, or a value out of range, gets the default", async () => {
  await visit({ query: "?view=nothing", wait: false }, async (page) => {
    await page.waitForSelector("[data-testid=status]");
    assert.deepEqual(await shown(page), ["view-search"]);
  });
  await visit({ query: "?view=lesson&part=99", wait: false }, async (page) => {
    await page.waitForSelector("akin-lesson");
    assert.equal(await page.$eval("akin-lesson", ({ number }) => number), 1);
  });
});

test("a teacher can hide the navigation and parts of a view", () =>
  visit(
    { query: "?view=playground&hide=navigation,controls", wait: false },
    async (page) => {
      await page.waitForSelector("akin-playground [data-item]");
      assert.equal(await page.isVisible(".masthead"), false);
      assert.equal(await page.$("akin-playground .controls"), null);
    },
  ));

test("a view whose script does not arrive says so", () =>
  visit(
    {
      ...PLAYGROUND,
      before: (context) =>
        context.route("**/build/playground-*.js", (route) => route.abort()),
    },
    async (page) => {
      const notice = await page.waitForSelector("[data-testid=notice]");
      assert.match(
        await notice.innerText(),
        /“Playground” could not be opened[^]*Reload the page/,
      );
    },
  ));

for (const scheme of ["light", "dark"]) {
  test(`the page for teachers shows its elements, and axe finds nothing in ${scheme}`, () =>
    visit(
      { query: "embed.html", wait: false, scheme, width: 360 },
      async (page) => {
        await page.waitForSelector("akin-playground [data-item]");
        await page.waitForSelector("akin-steps .item");
        assert.equal(await page.$("akin-playground .controls"), null);
        assert.deepEqual(await axeProblems(page), []);
      },
    ));
}

test("an element looks the same in a page without any of our styles", () =>
  visit(
    {
      query: "bare.html",
      wait: false,
      before: (context) =>
        context.route("**/bare.html", (route) =>
          route.fulfill({
            contentType: "text/html",
            body: `<!doctype html><html lang="en"><title>A course</title><script type="module" src="build/embed.js"></script><akin-playground hide="presets"></akin-playground></html>`,
          }),
        ),
    },
    async (page) => {
      await page.waitForSelector("akin-playground [data-item]");
      const style = await page.$eval("akin-playground", (element) => {
        const { fontFamily, color } = getComputedStyle(element);
        return { fontFamily, color };
      });
      assert.match(style.fontFamily, /Source Sans 3 Variable/);
      assert.equal(style.color, "rgb(34, 32, 28)");
      await page.evaluate(() => document.fonts.ready);
      assert.ok(
        await page.evaluate(() =>
          document.fonts.check('16px "Source Sans 3 Variable"'),
        ),
      );
    },
  ));

test("the map stands in a page of somebody else, with the bundle that it names", () =>
  visit(
    {
      query: "bare.html",
      wait: false,
      before: (context) =>
        context.route("**/bare.html", (route) =>
          route.fulfill({
            contentType: "text/html",
            body: `<!doctype html><html lang="en"><title>A course</title><script type="module" src="build/embed.js"></script><akin-map bundle="bundle/"></akin-map></html>`,
          }),
        ),
    },
    async (page) => {
      const map = await page.waitForSelector("akin-map [data-testid=map]");
      await page.waitForFunction(
        (canvas) => Number(canvas.dataset.points) > 0,
        map,
      );
      assert.equal(
        Number(await map.getAttribute("data-points")),
        bundle.gallery.count,
      );
    },
  ));
