// The engine in the browser computes the same as the command line, on both of its back ends.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { describe, test } from "node:test";
import { PICTURES } from "./fixture.mjs";
import { bundle, fixture, openSite, upload, waitForRankings } from "./site.mjs";

const encoders = bundle.encoders.map(({ name }) => name);
const levels = bundle.taxonomy.levels;
/** Items of the bundle that are queries: the first, the last, and two between. */
const ITEMS = [0, 17, 40, bundle.gallery.count - 1];

/** The rows of a two-dimensional .npy file of float32. */
function readNpy(file) {
  const bytes = readFileSync(file);
  const start = 10 + bytes.readUInt16LE(8);
  const header = bytes.toString("latin1", 10, start);
  assert.match(header, /'descr': '<f4'.*'fortran_order': False/);
  const [rows, columns] = header
    .match(/\((\d+), *(\d+)\)/)
    .slice(1)
    .map(Number);
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) =>
      bytes.readFloatLE(start + 4 * (row * columns + column)),
    ),
  );
}

/** A CSV without quotes, as objects. */
function readCsv(file) {
  const [header, ...rows] = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => line.split(","));
  return rows.map((row) =>
    Object.fromEntries(row.map((cell, column) => [header[column], cell])),
  );
}

function cosine(a, b) {
  const dot = (x, y) =>
    x.reduce((sum, value, index) => sum + value * y[index], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

for (const backend of ["webgpu", "cpu"]) {
  describe(`on ${backend}`, async () => {
    const { visit } = await openSite(backend);

    test("the bundle opens, and the badge names the back end", () =>
      visit({}, async (page, requests) => {
        // The test of the origins is void unless it sees the worker's requests.
        assert.ok(
          requests.some((url) => url.endsWith("weights.bpk")),
          requests.join("\n"),
        );
        // An engine that finds no adapter leaves its module to the next one.
        const modules = requests.filter((url) => url.includes("akin-web.js"));
        assert.equal(modules.length, 1, modules.join("\n"));
        assert.equal(
          await page.getAttribute("[data-testid=status]", "data-state"),
          "ready",
        );
        assert.equal(
          await page.getAttribute("[data-testid=backend]", "data-backend"),
          backend,
        );
        await page.click("[data-testid=backend] summary");
        const reason = await page.textContent("[data-testid=backend-reason]");
        assert.match(
          reason,
          backend === "webgpu" ? /passed its checks/ : /no graphics adapter/,
        );
        const adapter = await page.$("[data-testid=adapter]");
        if (backend === "cpu") assert.equal(adapter, null);
        else
          assert.match(
            await adapter.textContent(),
            /^Adapter: google swiftshader, in software\. Buffers of up to [\d.]+ [MG]B/,
          );
      }));

    test("an uploaded picture gets results, votes and times", () =>
      visit({}, async (page) => {
        // A picture of a few pixels is decoded in less than the clock of a browser counts.
        const [sheet] = bundle.thumbnails.sheets;
        await upload(page, "own.jpg", readFileSync(fixture("bundle", sheet)));
        await waitForRankings(page, "image:own.jpg");
        assert.ok((await page.$$("[data-testid=results] li")).length > 0);
        assert.equal(
          (await page.$$("[data-testid=votes] tr[data-vote]")).length,
          levels.length,
        );
        for (const part of ["decoding", "network", "search", "drawing"]) {
          const shown = await page.waitForSelector(`[data-timing=${part}]`, {
            state: "attached",
          });
          assert.ok(Number(await shown.getAttribute("data-value")) > 0, part);
        }
        // With labels chosen by the reader it gets a score.
        await page.click(".labels summary");
        for (const level of levels.keys())
          await page.selectOption(`select[data-level="${level + 1}"]`, {
            index: 1,
          });
        const hAp = await page.waitForSelector("[data-metric=h_ap]");
        assert.ok(Number(await hAp.getAttribute("data-value")) > 0);
      }));

    test("a picture gets the same embedding as from `akin embed`", (t) =>
      visit({}, async (page) => {
        let lowest = 1;
        for (const encoder of encoders) {
          const native = readNpy(fixture(`${encoder}.npy`));
          for (const [index, picture] of PICTURES.entries()) {
            const bytes = [...readFileSync(picture)];
            const here = await page.evaluate(
              ([encoder, bytes]) =>
                globalThis.akin.embed(encoder, new Uint8Array(bytes)),
              [encoder, bytes],
            );
            assert.equal(here.length, native[index].length);
            const similarity = cosine(here, native[index]);
            assert.ok(
              similarity >= 0.999,
              `${encoder}, ${basename(picture)}: cosine ${similarity}`,
            );
            lowest = Math.min(lowest, similarity);
          }
        }
        t.diagnostic(`the lowest cosine on ${backend} is ${lowest}`);
      }));

    test("an item's scores equal its row of `akin eval --per-query`", () =>
      visit({}, async (page) => {
        const [first, second] = encoders;
        const rows = new Map(
          encoders.map((encoder) => [
            encoder,
            readCsv(fixture(`${encoder}-scores.csv`)),
          ]),
        );
        for (const item of ITEMS) {
          const query = new URLSearchParams({
            encoder: first,
            compare: second,
            q: item,
          });
          await page.goto(new URL(`?${query}`, page.url()).href);
          await waitForRankings(page, `item:${item}`, 2);
          for (const encoder of encoders) {
            const row = rows.get(encoder)[item];
            assert.equal(Number(row.query), item);
            const expected = { h_ap: row.h_ap, ndcg: row.ndcg, asi: row.asi };
            levels.forEach((level, index) => {
              expected[`ap-${index + 1}`] = row[`${level}_ap`];
              expected[`recall_at_1-${index + 1}`] = row[`${level}_recall@1`];
            });
            for (const [metric, value] of Object.entries(expected)) {
              const shown = await page.getAttribute(
                `[data-metric=${metric}][data-encoder="${encoder}"]`,
                "data-value",
              );
              const which = `${metric} of item ${item} by ${encoder}: ${shown} on the page, ${value} by akin eval`;
              assert.equal(shown === "", value === "", which);
              assert.ok(Math.abs(Number(shown) - Number(value)) <= 1e-4, which);
            }
          }
        }
      }));
  });
}
