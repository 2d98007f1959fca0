// Galleries of the reader's own pictures: as many as memory allows, kept across visits, saved as a bundle, and removed.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { PICTURES } from "./fixture.mjs";
import {
  akin,
  axeProblems,
  bundle,
  fixture,
  inWorker,
  openSite,
  upload,
  waitForNotice,
  waitForRankings,
  waitForResults,
} from "./site.mjs";

const { unzipSync } = createRequire(
  new URL("../../www/package.json", import.meta.url),
)("fflate");

const { visit } = await openSite("cpu");
const [first, second] = bundle.encoders.map(({ name }) => name);
const [photo, , , , webp, drawing] = PICTURES;

const folder = mkdtempSync(join(tmpdir(), "akin-kept-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a folder of pictures: the paths in it, each with the file to copy or the bytes. */
function photos(name, files) {
  const root = join(folder, name);
  for (const [path, from] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    if (typeof from === "string") copyFileSync(from, join(root, path));
    else writeFileSync(join(root, path), from);
  }
  return root;
}

const HOLIDAY = {
  "birds/1.jpg": photo,
  "birds/2.jpg": PICTURES[1],
  "birds/3.jpg": PICTURES[3],
  "fish/1.webp": webp,
  "fish/2.png": drawing,
};

const chooseFolder = async (page, path) => {
  await page.click("[data-testid=own-entry] summary");
  await page.setInputFiles("[data-testid=own-folder]", path);
};
const makeOwn = async (page, path) => {
  await chooseFolder(page, path);
  await page.waitForSelector("[data-testid=own]");
  await waitForResults(page);
};
const keep = async (page) => {
  await page.click("[data-testid=keep-here]");
  await page.waitForSelector("[data-testid=keep][data-state=kept]");
};
const chooseKept = async (page, name) => {
  await page.click(`[data-testid=galleries] label:has-text("${name}")`);
  await page.waitForSelector("[data-testid=own]");
  await waitForResults(page);
};
const title = (page, text) =>
  page.waitForFunction(
    (text) => document.querySelector(".bundle-title")?.textContent === text,
    text,
  );
const results = (page) =>
  page.$$eval("[data-testid=results] li", (items) =>
    items.map(({ dataset }) => [dataset.item, dataset.score]),
  );
const countOf = (page) =>
  page.getAttribute("[data-testid=own]", "data-count").then(Number);
const keptOnes = (page) =>
  page.$$eval("[data-testid=galleries] [value^=kept]", ({ length }) => length);

/** What the store holds. */
const records = (page) =>
  page.evaluate(
    () =>
      new Promise((resolve, reject) => {
        // What nothing refers to, the browser may forget before it has ended.
        const opening = (globalThis.opening = indexedDB.open("akin"));
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const store = opening.result
            .transaction("own-galleries")
            .objectStore("own-galleries");
          const count = store.count();
          count.onsuccess = () => {
            opening.result.close();
            resolve(count.result);
          };
        };
      }),
  );

/** Changes fields of the only record of the store, and of each encoder in it. */
const changeRecord = (page, fields, ofEncoders) =>
  page.evaluate(
    ([fields, ofEncoders]) =>
      new Promise((resolve, reject) => {
        // What nothing refers to, the browser may forget before it has ended.
        const opening = (globalThis.opening = indexedDB.open("akin"));
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const transaction = opening.result.transaction(
            "own-galleries",
            "readwrite",
          );
          const cursor = transaction.objectStore("own-galleries").openCursor();
          cursor.onsuccess = () => {
            const record = { ...cursor.result.value, ...fields };
            record.encoders = record.encoders.map((encoder) => ({
              ...encoder,
              ...ofEncoders,
              ...(ofEncoders.cut ? { embeddings: new Blob(["cut"]) } : {}),
            }));
            cursor.result.update(record);
          };
          transaction.oncomplete = () => {
            opening.result.close();
            resolve();
          };
        };
      }),
    [fields, ofEncoders],
  );

/** Gives pictures embeddings of noise in place of the engine, which would take minutes for thousands. */
const embedWithNoise = inWorker(`
  let seed = 1;
  const noise = () => ((seed = (seed * 48271) % 2147483647) / 2147483647) - 0.5;
  self.addEventListener("message", (event) => {
    const { id, kind } = event.data;
    if (kind !== "embed") return;
    event.stopImmediatePropagation();
    const embedding = Array.from({ length: ${bundle.encoders[0].dimension} }, noise);
    self.postMessage({ id, result: { embedding, decode_ms: 0, embed_ms: 0 } });
  });
`);

test("a folder of more than 2,000 pictures is taken whole and kept, and the page says how many fit", () =>
  visit(
    { query: `?encoder=${first}`, before: embedWithNoise },
    async (page) => {
      const small = fixture("bundle", bundle.parity_pictures[1]);
      const many = Object.fromEntries(
        Array.from({ length: 2001 }, (_, index) => [
          `${index % 3}/${index}.jpg`,
          small,
        ]),
      );
      await page.click("[data-testid=own-entry] summary");
      const text = await page.innerText("[data-testid=own-entry]");
      const [, fits] = /room for\s+([\d,]+)\s+pictures/.exec(text);
      assert.ok(Number(fits.replaceAll(",", "")) >= 10_000, fits);
      await page.setInputFiles(
        "[data-testid=own-folder]",
        photos("many", many),
      );
      await page.waitForSelector("[data-testid=own]");
      await waitForResults(page);
      assert.equal(await countOf(page), 2001);
      assert.equal(await page.$("[data-testid=beyond]"), null);
      await keep(page);
      const before = await results(page);
      await page.reload();
      await waitForResults(page);
      await chooseKept(page, "many");
      assert.equal(await countOf(page), 2001);
      assert.deepEqual(await results(page), before);
    },
  ));

test("a reader who stops an embedding keeps the pictures that are done", () =>
  visit({}, async (page) => {
    const many = Object.fromEntries(
      Array.from({ length: 1000 }, (_, index) => [`${index}.jpg`, photo]),
    );
    await chooseFolder(page, photos("stopped", many));
    await page.click("[data-testid=stop]");
    await page.waitForSelector("[data-testid=own]");
    await waitForResults(page);
    const left = Number(
      await page.getAttribute("[data-testid=stopped]", "data-count"),
    );
    assert.ok(left > 0);
    assert.equal((await countOf(page)) + left, 1000);
  }));

test("a kept gallery is there at the next visit, answers as before, and is removed for good", () =>
  visit({ query: `?encoder=${first}` }, async (page, requests) => {
    await makeOwn(page, photos("holiday", HOLIDAY));
    assert.match(
      await page.innerText("[data-testid=keep]"),
      /Closing the page forgets.*not the pictures themselves.*Nothing leaves this device/s,
    );
    // The second encoder's embeddings are kept, too.
    await page.check(`[data-testid=encoders] [value=${second}]`, {
      force: true,
    });
    await page.waitForSelector(
      `[data-testid=ranking][data-encoder=${second}][aria-busy=false]`,
    );
    requests.length = 0;
    await keep(page);
    assert.match(await page.innerText("[data-testid=keep]"), /in all and may/);
    const fetched = requests.filter((url) => !/^blob:|mark\.svg$/.test(url));
    assert.deepEqual(fetched, [], "keeping a gallery requests something");
    assert.deepEqual(await axeProblems(page), []);
    const before = await results(page);

    await page.reload();
    await waitForResults(page);
    await title(page, "Creatures");
    await chooseKept(page, "holiday");
    await page.waitForSelector(
      `[data-testid=ranking][data-encoder=${second}][aria-busy=false]`,
    );
    assert.deepEqual(await results(page), before);
    assert.equal(await countOf(page), 5);
    assert.equal(await page.$("akin-thumb[data-failed]"), null);
    await upload(page, "own.jpg", readFileSync(photo));
    await waitForRankings(page, "image:own.jpg");
    assert.equal((await results(page))[0][0], "0");
    // A killed engine gets it again.
    await page.workers()[0].evaluate(() => self.close());
    await page.waitForFunction(() =>
      document
        .querySelector("[data-testid=backend-reason]")
        ?.textContent.includes("restarted"),
    );
    await page.waitForSelector("[data-testid=status][data-state=ready]");
    assert.equal(await countOf(page), 5);

    // Removing asks first, and a reader may think better of it.
    await page.click("[data-testid=remove-own]");
    await page.waitForSelector("[data-testid=remove-dialog][open]");
    assert.deepEqual(await axeProblems(page), []);
    await page.keyboard.press("Escape");
    assert.equal(await records(page), 1);
    await page.click("[data-testid=remove-own]");
    await page.click("[data-testid=remove-now]");
    await title(page, "Creatures");
    assert.equal(await keptOnes(page), 0);
    assert.equal(await records(page), 0);
    await page.reload();
    await waitForResults(page);
    assert.equal(await keptOnes(page), 0);
  }));

test("several galleries are kept beside one that is not", () =>
  visit({}, async (page) => {
    await makeOwn(page, photos("holiday", HOLIDAY));
    await keep(page);
    await makeOwn(page, photos("flat", { "1.jpg": photo, "2.webp": webp }));
    await title(page, "flat");
    assert.equal(await keptOnes(page), 1);
    await chooseKept(page, "holiday");
    await title(page, "holiday");
    await page.check("[data-testid=galleries] [value=own]", { force: true });
    await title(page, "flat");
    await waitForResults(page);
    await keep(page);
    await page.reload();
    await waitForResults(page);
    assert.equal(await keptOnes(page), 2);
    await chooseKept(page, "flat");
    assert.equal(await countOf(page), 2);
  }));

test("a gallery saved as a bundle passes `akin verify`, and the page opens it", async () => {
  const flat = { "1.jpg": photo, "2.webp": webp, "3.png": drawing };
  for (const [name, files] of Object.entries({ holiday: HOLIDAY, flat })) {
    await visit({ query: `?encoder=${first}` }, async (page) => {
      await makeOwn(page, photos(`saved/${name}`, files));
      const before = await results(page);
      const saving = page.waitForEvent("download");
      await page.click("[data-testid=export-own]");
      const saved = await saving;
      assert.equal(saved.suggestedFilename(), `${name}.zip`);
      const archive = join(folder, `${name}.zip`);
      await saved.saveAs(archive);
      const root = join(folder, "unpacked");
      for (const [path, bytes] of Object.entries(
        unzipSync(readFileSync(archive)),
      )) {
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), bytes);
      }
      execFileSync(akin, ["verify", join(root, name)]);

      await page.click("[data-testid=bundle-entry] summary");
      await page.setInputFiles("[data-testid=bundle-archive]", archive);
      await page.waitForSelector(
        `[data-testid=galleries] input[value='local:${name}']:checked`,
      );
      await page.waitForSelector("[data-testid=status][data-state=ready]");
      await waitForResults(page);
      assert.equal(await page.$("[data-testid=own]"), null);
      assert.deepEqual(await results(page), before);
      assert.equal(await page.$("akin-thumb[data-failed]"), null);
      await upload(page, "own.jpg", readFileSync(photo));
      await waitForRankings(page, "image:own.jpg");
      assert.equal((await results(page))[0][0], "0");
      assert.deepEqual(await axeProblems(page), []);
    });
  }
});

test("a full disk loses nothing", () =>
  visit({}, async (page) => {
    await makeOwn(page, photos("holiday", HOLIDAY));
    await page.evaluate(() => {
      const { put, add } = IDBObjectStore.prototype;
      globalThis.makeRoom = () =>
        Object.assign(IDBObjectStore.prototype, { put, add });
      IDBObjectStore.prototype.put = IDBObjectStore.prototype.add = () => {
        throw new DOMException("no room", "QuotaExceededError");
      };
    });
    await page.click("[data-testid=keep-here]");
    const { code, text } = await waitForNotice(page);
    assert.equal(code, "full");
    assert.match(text, /no room left.*still open in this page/);
    assert.deepEqual(await axeProblems(page), []);
    assert.equal(await countOf(page), 5);
    await page.evaluate(() => globalThis.makeRoom());
    await keep(page);
    assert.equal(await page.$("[data-testid=notice]"), null);
  }));

test("a browser that keeps nothing makes galleries all the same, and says why it does not keep them", () =>
  visit(
    {
      before: (context) =>
        context.addInitScript(() => {
          IDBFactory.prototype.open = () => {
            throw new DOMException("denied", "SecurityError");
          };
        }),
    },
    async (page) => {
      await makeOwn(page, photos("holiday", HOLIDAY));
      await page.click("[data-testid=keep-here]");
      const { code, text } = await waitForNotice(page);
      assert.equal(code, "store");
      assert.match(text, /does not let this page keep anything/);
      assert.equal(await countOf(page), 5);
    },
  ));

test("a kept gallery of another encoder, of another version or with damage is refused, and stays", () =>
  visit({}, async (page) => {
    await makeOwn(page, photos("holiday", HOLIDAY));
    await keep(page);
    const refused = async (fields, ofEncoders, why) => {
      await changeRecord(page, fields, ofEncoders);
      await page.reload();
      await waitForResults(page);
      await page.click(`[data-testid=galleries] label:has-text("holiday")`);
      const { code, text } = await waitForNotice(page);
      assert.equal(code, "store");
      assert.match(text, why);
      assert.equal(await page.$("[data-testid=own]"), null);
      await title(page, "Creatures");
      assert.equal(
        await page.$("[data-testid=galleries] [value^=kept]:checked"),
        null,
      );
      assert.equal(await records(page), 1);
    };
    await refused(
      {},
      { cut: true },
      /is damaged: its embeddings by \w+ cannot be read/,
    );
    await refused({}, { identity: "other" }, /this bundle has another encoder/);
    await refused({ version: 2 }, {}, /kept by another version of this page/);
    assert.deepEqual(await axeProblems(page), []);
    await page.click("[data-testid=notice] button");
    await page.click("[data-testid=remove-now]");
    await page.waitForSelector("[data-testid=notice]", { state: "detached" });
    assert.equal(await records(page), 0);
  }));
