// HIER's proxies on the Poincaré disk: hidden at first, reached by keyboard, kept in the address.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { axeProblems, fixture, openSite } from "./site.mjs";

const { visit } = await openSite("cpu", [], ["inside"]);
const bundle = JSON.parse(readFileSync(fixture("inside/bundle.json"), "utf8"));
const encoder = bundle.encoders.find(({ name }) => name === "HIER");
const { name: DISK, proxies } = encoder.maps.find(({ proxies }) => proxies);
const depth = bundle.taxonomy.levels.length;

const bytes = (path) => readFileSync(fixture("inside", path));
const numbers = (path) => {
  const file = bytes(path);
  return Array.from({ length: file.length / 4 }, (_, at) =>
    file.readUInt32LE(4 * at),
  );
};
const nearest = numbers(proxies.nearest);
const ancestors = numbers(proxies.ancestors);

/** The ancestors of an item from the finest level to the coarsest, each once in a row. */
function lineOf(item) {
  const row = ancestors.slice(item * depth, (item + 1) * depth).reverse();
  const known = row.filter((proxy) => proxy !== 0xffffffff);
  return known.filter((proxy, at) => proxy !== known[at - 1]);
}

const query = (more = {}) =>
  `?${new URLSearchParams({ view: "map", encoder: "HIER", map: DISK, ...more })}`;
const shown = (page) =>
  page.waitForSelector("akin-map canvas.proxies[data-proxies]");
const waitForParameter = (page, name, value) =>
  page.waitForFunction(
    ([name, value]) => new URL(location.href).searchParams.get(name) === value,
    [name, value],
  );

describe("HIER's proxies", () => {
  test("they appear at a control, and by keyboard one shows its nearest pictures", () =>
    visit({ query: query(), wait: false }, async (page) => {
      await page.waitForSelector("akin-map [data-testid=map][data-points]");
      assert.equal(await page.$("akin-map canvas.proxies"), null);
      assert.equal(await page.$("akin-map [data-testid=proxies]"), null);

      await page.focus("akin-map [data-testid=show-proxies]");
      await page.keyboard.press("Space");
      await shown(page);
      await waitForParameter(page, "proxies", "all");
      assert.equal(
        await page.getAttribute("akin-map canvas.proxies", "data-proxies"),
        String(proxies.count),
      );

      await page.selectOption("akin-map [data-testid=proxy]", "3");
      await page.waitForSelector(
        "akin-map [data-testid=proxies][data-chosen='3']",
      );
      await waitForParameter(page, "proxies", "3");
      const tiles = () =>
        page.$$eval("akin-map [data-testid=proxy-nearest] li", (items) =>
          items.map(({ dataset }) => Number(dataset.item)),
        );
      const expected = nearest.slice(
        3 * proxies.per_proxy,
        4 * proxies.per_proxy,
      );
      assert.deepEqual(await tiles(), expected);
      const items = new Set(
        ancestors.flatMap((proxy, at) =>
          proxy === 3 ? [Math.floor(at / depth)] : [],
        ),
      );
      const text = await page.textContent("akin-map .proxy-text");
      assert.match(
        text,
        items.size === 0
          ? /No picture meets its kin/
          : new RegExp(`ancestor of ${items.size} picture`),
      );

      await page.reload();
      await page.waitForSelector(
        "akin-map [data-testid=proxies][data-chosen='3']",
      );
      assert.deepEqual(await tiles(), expected);

      await page.focus("akin-map [data-testid=proxy-nearest] button");
      await page.keyboard.press("Enter");
      await waitForParameter(page, "q", String(expected[0]));

      await page.uncheck("akin-map [data-testid=show-proxies]");
      await page.waitForSelector("akin-map canvas.proxies", {
        state: "detached",
      });
      await waitForParameter(page, "proxies", null);
    }));

  test("the line of the query leads through its ancestors", () =>
    visit(
      { query: query({ proxies: "all", q: "5" }), wait: false },
      async (page) => {
        await shown(page);
        await page.waitForFunction(
          (line) =>
            document
              .querySelector("akin-map")
              .shadowRoot.querySelector("canvas.proxies").dataset.line === line,
          lineOf(5).join(" "),
        );
      },
    ));

  test("a click on a proxy chooses it", () =>
    visit({ query: query({ proxies: "all" }), wait: false }, async (page) => {
      await shown(page);
      const file = bytes(proxies.coordinates);
      const points = Array.from({ length: proxies.count }, (_, at) => [
        file.readFloatLE(8 * at),
        file.readFloatLE(8 * at + 4),
      ]);
      const canvas = page.locator("akin-map [data-testid=map]");
      await canvas.evaluate((canvas) =>
        canvas.scrollIntoView({ behavior: "instant", block: "center" }),
      );
      const { x, y, width, height } = await canvas.boundingBox();
      const radius = (Math.min(width, height) / 2) * 0.92;
      const place = ([px, py]) => [
        x + width / 2 + px * radius,
        y + height / 2 - py * radius,
      ];
      await page.mouse.click(...place(points[0]));
      await page.waitForFunction(
        () =>
          document
            .querySelector("akin-map")
            .shadowRoot.querySelector("[data-testid=proxies]")?.dataset
            .chosen !== "",
      );
      const chosen = Number(
        await page.getAttribute(
          "akin-map [data-testid=proxies]",
          "data-chosen",
        ),
      );
      // Another proxy may lie at the same place, up to a pixel.
      const [a, b] = [place(points[0]), place(points[chosen])];
      assert.ok(Math.hypot(a[0] - b[0], a[1] - b[1]) < 1.5, `proxy ${chosen}`);
    }));

  test("a map without proxies has no control for them", () =>
    visit({ query: query({ map: "PCA" }), wait: false }, async (page) => {
      await page.waitForSelector("akin-map [data-testid=map][data-points]");
      assert.equal(await page.$("akin-map [data-testid=show-proxies]"), null);
    }));

  for (const scheme of ["light", "dark"])
    for (const width of [360, 1280])
      test(`axe finds nothing at ${width} px in ${scheme}`, () =>
        visit(
          { query: query({ proxies: "3" }), width, scheme, wait: false },
          async (page) => {
            await shown(page);
            await page.waitForSelector("akin-map [data-testid=proxy-nearest]");
            assert.deepEqual(await axeProblems(page), []);
          },
        ));
});
