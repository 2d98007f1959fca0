// Every kind of picture gets an answer; other files are refused.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { crc32, deflateSync } from "node:zlib";
import {
  inWorker,
  openSite,
  upload,
  waitForNotice,
  waitForRankings,
} from "./site.mjs";

const { visit } = await openSite("cpu");
const image = (name) =>
  readFileSync(new URL(`../../core/tests/images/${name}`, import.meta.url));

/** A PNG of one colour. Colour types: 0 grey, 2 RGB, 6 RGB with alpha. */
function png(width, height, depth, type) {
  const channels = { 0: 1, 2: 3, 6: 4 }[type];
  const row = Buffer.alloc(1 + (width * channels * depth) / 8, 0x5a);
  row[0] = 0;
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    check.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, check]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([depth, type, 0, 0, 0], 8);
  const data = deflateSync(Buffer.concat(Array(height).fill(row)), {
    level: 1,
  });
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", data),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

const PICTURES = {
  "a CMYK JPEG": image("cmyk-adobe.jpg"),
  "a CMYK JPEG without Adobe's mark": image("cmyk-plain.jpg"),
  "a JPEG that lies on its side": image("turned.jpg"),
  "a WebP": image("lossy.webp"),
  "a PNG of 16 bits": png(40, 30, 16, 2),
  "a PNG with alpha": png(40, 30, 8, 6),
  "a PNG of one pixel": png(1, 1, 8, 2),
  "a PNG of 12,000 × 9,000 pixels": png(12_000, 9_000, 8, 0),
};

const jpeg = image("rgb.jpg");
const REFUSED = {
  "a truncated JPEG": [
    jpeg.subarray(0, jpeg.length / 2),
    /cut short|truncated|ends|incomplete|damaged/i,
  ],
  "a truncated PNG": [
    png(40, 30, 8, 2).subarray(0, 60),
    /cut short|truncated|ends|incomplete|damaged/i,
  ],
  "a HEIC": [
    Buffer.from("\0\0\0\x18ftypheic\0\0\0\0mif1heic", "latin1"),
    /HEIC/,
  ],
  "a text": [Buffer.from("Dear akin,\n"), /JPEG, PNG/],
  "an empty file": [Buffer.alloc(0), /empty/i],
};

test("every kind of picture gets an answer", async (t) => {
  for (const [what, bytes] of Object.entries(PICTURES)) {
    await t.test(what, () =>
      visit({}, async (page) => {
        await upload(page, "picture", bytes);
        await page.waitForSelector(
          `[data-query="image:picture"][aria-busy=false], [data-testid=notice]`,
        );
        assert.equal(
          await page
            .$eval("[data-testid=notice]", (notice) => notice.textContent)
            .catch(() => null),
          null,
        );
        await waitForRankings(page, "image:picture");
      }),
    );
  }
});

test("the browser reads an AVIF as Pillow does", () =>
  visit({}, async (page) => {
    const scores = async (name) => {
      await upload(page, name, image(name));
      await waitForRankings(page, `image:${name}`);
      return page.$$eval("[data-testid=results] > li", (found) =>
        found.map(({ dataset }) => Number(dataset.score)),
      );
    };
    const [own, expected] = [
      await scores("smooth.avif"),
      await scores("smooth.avif.expected.png"),
    ];
    for (const [place, score] of own.entries())
      assert.ok(Math.abs(score - expected[place]) < 2e-3, `${place}: ${score}`);
  }));

test("other files are refused by name, and the next picture gets an answer", () =>
  visit({}, async (page) => {
    for (const [what, [bytes, message]] of Object.entries(REFUSED)) {
      await upload(page, what, bytes);
      await page.waitForFunction(
        (what) =>
          document
            .querySelector("[data-testid=notice]")
            ?.textContent.includes(what),
        what,
      );
      const { code, text } = await waitForNotice(page);
      assert.equal(code, "image", what);
      assert.match(text, message);
      assert.equal(
        (await page.$$("[data-testid=results] li")).length,
        0,
        `${what} has results`,
      );
    }
    await upload(page, "holiday.jpg", jpeg);
    await waitForRankings(page, "image:holiday.jpg");
    assert.equal(await page.$("[data-testid=notice]"), null);
  }));

/** Every file is gone when the engine's worker reads it. */
const removeFiles = inWorker(`
  Blob.prototype.arrayBuffer = async () => {
    throw new DOMException("The file could not be read", "NotReadableError");
  };
`);

test("a picture that was removed after the choice is refused, and the gallery still answers", () =>
  visit({ before: removeFiles }, async (page) => {
    await upload(page, "own.jpg", jpeg);
    const { code, text } = await waitForNotice(page);
    assert.equal(code, "image");
    assert.match(text, /own\.jpg.*cannot be read any more/i);
    const [sample] = await page.$$(".samples [data-item]");
    const item = await sample.getAttribute("data-item");
    await sample.click();
    await waitForRankings(page, `item:${item}`);
  }));
