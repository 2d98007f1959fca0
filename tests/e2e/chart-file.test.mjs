// Charts that a reader saves: files of their own, which show what the page shows.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { openViews } from "./views.mjs";

const { address, visit } = await openViews();

/** Saves the first chart of a view, and returns its name, its bytes and its size on the page. */
async function save(page, button) {
  const download = page.waitForEvent("download");
  await page.locator(".save-chart button", { hasText: button }).first().click();
  const file = await download;
  return {
    name: file.suggestedFilename(),
    bytes: readFileSync(await file.path()),
  };
}

const curve = (check, options = {}) =>
  visit({ ...options, query: "?view=playground" }, async (page) => {
    await page.waitForSelector(".curve svg");
    const size = await page.locator(".curve svg").boundingBox();
    await check(page, size);
  });

for (const scheme of ["light", "dark"]) {
  test(`a saved SVG has the colours and fonts of the page in it, ${scheme}`, () =>
    curve(
      async (page, { width, height }) => {
        const { name, bytes } = await save(page, "SVG");
        assert.equal(name, "h-ap-curve.svg");
        const text = bytes.toString();
        const shown = await page.evaluate((text) => {
          const file = new DOMParser().parseFromString(text, "image/svg+xml");
          const chart = document
            .querySelector("akin-playground")
            .shadowRoot.querySelector(".curve svg");
          const count = (root, name) => root.querySelectorAll(name).length;
          const drawn = (element) => getComputedStyle(element).stroke;
          return {
            problems: count(file, "parsererror"),
            size: ["width", "height"].map((name) =>
              Number(file.documentElement.getAttribute(name)),
            ),
            shapes: [count(chart, "path, text"), count(file, "path, text")],
            line: file.querySelectorAll("path[stroke-dasharray]").length,
            colours: [
              ...new Set(
                [...file.querySelectorAll("[stroke], [fill]")].flatMap(
                  (shape) =>
                    [
                      shape.getAttribute("stroke"),
                      shape.getAttribute("fill"),
                    ].filter(Boolean),
                ),
              ),
            ],
            paper: file.querySelector("rect").getAttribute("fill"),
            stroke: drawn(chart.querySelector(".h-line")),
          };
        }, text);
        assert.equal(shown.problems, 0);
        assert.deepEqual(shown.size, [width, height]);
        assert.equal(shown.shapes[1], shown.shapes[0]);
        assert.ok(shown.line > 0, "the line of plain precision is not broken");
        for (const colour of shown.colours)
          assert.match(colour, /^(#[0-9a-f]{6}|none)$/);
        const bright = Number.parseInt(shown.paper.slice(1, 3), 16) > 128;
        assert.equal(bright, scheme === "light");
        assert.match(text, /@font-face\{font-family:"Source Sans 3 Variable"/);
        // No stylesheet, class, variable or other file.
        assert.doesNotMatch(text, /class=|var\(|style=|data-|<link/);
        assert.deepEqual(
          text.match(/(?:href|src)=?[("]*(?!data:)https?:[^"')]*/g),
          null,
        );
      },
      { scheme },
    ));
}

test("a saved PNG shows the chart at three times its size", () =>
  curve(async (page, { width, height }) => {
    const { name, bytes } = await save(page, "PNG");
    assert.equal(name, "h-ap-curve.png");
    assert.equal(bytes.toString("latin1", 1, 4), "PNG");
    assert.equal(bytes.readUInt32BE(16), Math.round(3 * width));
    assert.equal(bytes.readUInt32BE(20), Math.round(3 * height));
    const colours = await page.evaluate(async (base64) => {
      const image = new Image();
      image.src = `data:image/png;base64,${base64}`;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, image.width, image.height);
      const found = new Set();
      for (let at = 0; at < data.length; at += 4)
        found.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
      return found.size;
    }, bytes.toString("base64"));
    assert.ok(colours > 20, `the picture has only ${colours} colours`);
  }));

test("a saved picture holds the drawings in it", () =>
  visit({ query: "?view=training" }, async (page) => {
    await page.waitForSelector("[data-testid=training][data-state=ready]");
    const text = (await save(page, "SVG")).bytes.toString();
    const hrefs = text.match(/href="[^"]{0,24}/g);
    assert.ok(hrefs.length > 0);
    for (const href of hrefs) assert.match(href, /^href="data:image\/png/);
    assert.ok(!text.includes(address));
  }));
