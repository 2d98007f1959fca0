// The page and the command line refuse a bundle that is damaged or of another version, and name the file.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import {
  akin,
  bundle,
  canonical,
  fixture,
  openSite,
  waitForNotice,
} from "./site.mjs";

const { visit } = await openSite("cpu");
const [encoder] = bundle.encoders;

/** Changes one byte in the middle. */
const changeByte = (bytes) => {
  const other = Buffer.from(bytes);
  other[other.length >> 1] ^= 1;
  return other;
};
const cutShort = (bytes) => bytes.subarray(0, bytes.length - 5);
const editManifest = (edit) => (bytes) => {
  const manifest = JSON.parse(bytes);
  edit(manifest);
  return Buffer.from(JSON.stringify(manifest));
};

/** The float32 numbers of a file, `dimension` per row. */
function readRows(file, dimension) {
  const bytes = readFileSync(file);
  return Array.from({ length: bytes.length / (4 * dimension) }, (_, row) =>
    Array.from({ length: dimension }, (_, column) =>
      bytes.readFloatLE(4 * (row * dimension + column)),
    ),
  );
}

test("the best scores of an encoder are those of its gallery embeddings", () => {
  for (const {
    name,
    dimension,
    gallery_embeddings,
    best_scores,
    report,
  } of bundle.encoders) {
    assert.equal(report.config.similarity, "cosine");
    const rows = readRows(fixture("bundle", gallery_embeddings), dimension).map(
      (row) => row.map((value) => value / Math.hypot(...row)),
    );
    const cosine = (a, b) =>
      a.reduce((sum, value, index) => sum + value * b[index], 0);
    const best = rows.map((row) =>
      Math.max(
        ...rows
          .filter((other) => other !== row)
          .map((other) => cosine(row, other)),
      ),
    );
    best.sort((a, b) => a - b);
    assert.equal(best_scores.quantiles.length, 101);
    best_scores.quantiles.forEach((score, percent) => {
      const expected = best[Math.floor((percent * (best.length - 1)) / 100)];
      assert.ok(
        Math.abs(score - expected) < 1e-5,
        `percentile ${percent} of ${name}: ${score} in the bundle, ${expected} computed`,
      );
    });
  }
});

test("the digest of a bundle is that of RFC 8785", () => {
  const { digest, ...manifest } = bundle;
  assert.equal(
    createHash("sha256").update(canonical(manifest)).digest("hex"),
    digest,
  );
});

const DAMAGES = [
  [
    "labels with a byte changed",
    bundle.labels,
    changeByte,
    /labels\.bin was changed after/,
  ],
  ["labels cut short", bundle.labels, cutShort, /labels\.bin is cut short/],
  [
    "weights with a byte changed",
    encoder.weights,
    changeByte,
    /weights\.bpk was changed after/,
  ],
  ["weights cut short", encoder.weights, cutShort, /weights\.bpk is cut short/],
  [
    "a gallery with a byte changed",
    encoder.gallery_embeddings,
    changeByte,
    /gallery\.f32 was changed after/,
  ],
  [
    "a gallery cut short",
    encoder.gallery_embeddings,
    cutShort,
    /gallery\.f32 is cut short/,
  ],
  [
    "a manifest with a byte changed",
    "bundle.json",
    editManifest((manifest) => (manifest.title = "Creaturez")),
    /bundle\.json was changed after/,
  ],
  [
    "a manifest cut short",
    "bundle.json",
    cutShort,
    /bundle\.json is damaged or cut short/,
  ],
  [
    "a newer version",
    "bundle.json",
    editManifest((manifest) => (manifest.version = 2)),
    /needs a newer akin: bundle\.json has version 2.*update akin/i,
  ],
  [
    "another format",
    "bundle.json",
    editManifest((manifest) => (manifest.format = "zip")),
    /has the format "zip"/,
  ],
];

for (const [what, file, damage, message] of DAMAGES) {
  test(`the page refuses ${what}`, () =>
    visit(
      {
        query: `?${new URLSearchParams({ encoder: encoder.name })}`,
        wait: false,
        before: (context) =>
          context.route(`**/bundle/${file}`, (route) =>
            route.fulfill({
              body: damage(readFileSync(fixture("bundle", file))),
            }),
          ),
      },
      async (page) => {
        const { code, text } = await waitForNotice(page);
        assert.equal(code, "bundle", text);
        assert.match(text, message);
        assert.equal(
          await page.getAttribute("[data-testid=status]", "data-state"),
          "error",
        );
      },
    ));
}

test("the page refuses a missing bundle and a bundle on another origin", async () => {
  await visit({ query: "?bundle=nowhere", wait: false }, async (page) => {
    const { code, text } = await waitForNotice(page);
    assert.equal(code, "bundle");
    assert.match(text, /There is no bundle at .*akin export/);
  });
  await visit(
    { query: "?bundle=https://example.org/bundle/", wait: false },
    async (page) => {
      assert.equal((await waitForNotice(page)).code, "origin");
    },
  );
});

test("`akin serve` refuses a damaged bundle before it serves it", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "akin-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [what, file, damage, message] of DAMAGES) {
    const copy = join(folder, what);
    cpSync(fixture("bundle"), copy, { recursive: true });
    writeFileSync(join(copy, file), damage(readFileSync(join(copy, file))));
    const refused = await promisify(execFile)(
      akin,
      ["serve", copy, "--port", "0"],
      { timeout: 20_000 },
    ).then(
      () => assert.fail(`akin serve accepts ${what}`),
      (error) => error,
    );
    assert.equal(refused.code, 1, what);
    assert.match(
      refused.stderr.replaceAll(/\s+/g, " "),
      damage === cutShort && file !== "bundle.json"
        ? /of the bundle has \d+ bytes; it should have/
        : message,
    );
  }
});
