// A bundle that is damaged or of another version is refused by name, in the browser and on the command line.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { akin, bundle, fixture, noticed, openSite } from "./site.mjs";

const { visit } = await openSite("cpu");
const [encoder] = bundle.encoders;

/** One byte changed, in the middle. */
const changed = (bytes) => {
  const other = Buffer.from(bytes);
  other[other.length >> 1] ^= 1;
  return other;
};
const cut = (bytes) => bytes.subarray(0, bytes.length - 5);
const edited = (edit) => (bytes) => {
  const manifest = JSON.parse(bytes);
  edit(manifest);
  return Buffer.from(JSON.stringify(manifest));
};

const DAMAGES = [
  ["labels with a byte changed", bundle.labels, changed, /labels\.bin has been changed/],
  ["labels cut short", bundle.labels, cut, /labels\.bin is cut short/],
  ["weights with a byte changed", encoder.weights, changed, /weights\.bpk has been changed/],
  ["weights cut short", encoder.weights, cut, /weights\.bpk is cut short/],
  ["a gallery with a byte changed", encoder.gallery_embeddings, changed, /gallery\.f32 has been changed/],
  ["a gallery cut short", encoder.gallery_embeddings, cut, /gallery\.f32 is cut short/],
  ["a manifest with a byte changed", "bundle.json", edited((manifest) => (manifest.title = "Creaturez")), /bundle\.json has been changed/],
  ["a manifest cut short", "bundle.json", cut, /bundle\.json is damaged or cut short/],
  ["a newer version", "bundle.json", edited((manifest) => (manifest.version = 2)), /version 2, newer than .*update akin/i],
  ["another format", "bundle.json", edited((manifest) => (manifest.format = "zip")), /not of the format/],
];

for (const [what, file, damage, says] of DAMAGES) {
  test(`the page refuses ${what}`, () =>
    visit(
      {
        query: `?${new URLSearchParams({ encoder: encoder.name })}`,
        wait: false,
        before: (context) =>
          context.route(`**/bundle/${file}`, (route) => route.fulfill({ body: damage(readFileSync(fixture("bundle", file))) })),
      },
      async (page) => {
        const { code, text } = await noticed(page);
        assert.equal(code, "bundle", text);
        assert.match(text, says);
        assert.equal(await page.getAttribute("[data-testid=status]", "data-state"), "error");
      },
    ));
}

test("the page refuses a bundle that is not there, and one of another origin", async () => {
  await visit({ query: "?bundle=nowhere", wait: false }, async (page) => {
    const { code, text } = await noticed(page);
    assert.equal(code, "bundle");
    assert.match(text, /No bundle could be read.*akin export/);
  });
  await visit({ query: "?bundle=https://example.org/bundle/", wait: false }, async (page) => {
    assert.equal((await noticed(page)).code, "origin");
  });
});

test("`akin serve` refuses what it can see without reading everything", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "akin-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [what, file, damage, says] of DAMAGES.filter(([, file, damage]) => damage === cut || file === "bundle.json")) {
    const copy = join(folder, what);
    cpSync(fixture("bundle"), copy, { recursive: true });
    writeFileSync(join(copy, file), damage(readFileSync(join(copy, file))));
    const refused = await promisify(execFile)(akin, ["serve", copy, "--port", "0"], { timeout: 20_000 }).then(
      () => assert.fail(`${what} is served`),
      (error) => error,
    );
    assert.equal(refused.code, 1, what);
    assert.match(refused.stderr.replaceAll(/\s+/g, " "), damage === cut && file !== "bundle.json" ? /of the bundle has \d+ bytes, but should have/ : says);
  }
});
