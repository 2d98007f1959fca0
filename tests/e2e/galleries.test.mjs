// Several galleries: the page switches between them, says when a picture is unlike one, and makes one of the
// reader's own pictures.
import assert from "node:assert/strict";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { PICTURES } from "./fixture.mjs";
import {
  axeProblems,
  bundle,
  openSite,
  upload,
  waitForNotice,
  waitForRankings,
  waitForResults,
} from "./site.mjs";

const { visit } = await openSite("cpu");
const [first, second] = bundle.encoders.map(({ name }) => name);
const [photo, , , , , drawing] = PICTURES;

const folder = mkdtempSync(join(tmpdir(), "akin-own-"));
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

const title = (page, text) =>
  page.waitForFunction(
    (text) => document.querySelector(".bundle-title")?.textContent === text,
    text,
  );
const galleries = (page) =>
  page.$$eval("[data-testid=galleries] input", (inputs) =>
    inputs.map(({ value }) => value),
  );
const makeOwn = async (page, path) => {
  await page.click("[data-testid=own-entry] summary");
  await page.setInputFiles("[data-testid=own-folder]", path);
  await page.waitForSelector("[data-testid=own], [data-testid=notice]");
};
const results = (page) =>
  page.$$eval("[data-testid=results] li", (items) =>
    items.map(({ dataset }) => ({
      item: dataset.item,
      score: Number(dataset.score),
      shared: dataset.sharedLevel,
    })),
  );

test("a reader switches the gallery by keyboard, and the address and the reload keep it", () =>
  visit({ query: "?q=5" }, async (page) => {
    await page.waitForSelector("[data-testid=galleries]");
    assert.deepEqual(await galleries(page), ["bundle/", "bundles/half/"]);
    await page.focus("[data-testid=galleries] input:checked");
    await page.keyboard.press("ArrowRight");
    await title(page, "Half");
    await waitForResults(page);
    assert.equal(
      await page.evaluate(() => document.activeElement.value),
      "bundles/half/",
    );
    await page.waitForURL(
      ({ searchParams }) =>
        searchParams.get("bundle") === "bundles/half/" &&
        searchParams.get("q") === null,
    );
    await page.reload();
    await title(page, "Half");
    await waitForResults(page);
  }));

test("a gallery in half precision is ranked as in full precision", async () => {
  const answers = [];
  for (const gallery of ["bundle/", "bundles/half/"]) {
    await visit(
      {
        query: `?${new URLSearchParams({ bundle: gallery, encoder: first, q: 5 })}`,
      },
      async (page) => {
        await waitForRankings(page, "item:5");
        const hAp = Number(
          await page.getAttribute("[data-metric=h_ap]", "data-value"),
        );
        answers.push({ hAp, results: await results(page) });
      },
    );
  }
  const [full, half] = answers;
  assert.ok(
    Math.abs(full.hAp - half.hAp) < 0.01,
    `${full.hAp} and ${half.hAp}`,
  );
  full.results.forEach(({ score }, rank) =>
    assert.ok(Math.abs(score - half.results[rank].score) < 2e-3),
  );
});

test("the reader's own picture stays the query in another gallery", () =>
  visit({}, async (page) => {
    await upload(page, "own.jpg", readFileSync(photo));
    await waitForRankings(page, "image:own.jpg");
    await page.check("[data-testid=galleries] [value='bundles/half/']", {
      force: true,
    });
    await title(page, "Half");
    await waitForRankings(page, "image:own.jpg");
    assert.ok((await page.$$("[data-testid=votes] tr[data-vote]")).length > 0);
  }));

test("a folder of own pictures becomes a gallery, without the damaged ones, and its subfolders are labels", () =>
  visit({ query: `?encoder=${first}` }, async (page, requests) => {
    const jpeg = readFileSync(photo);
    const root = photos("holiday", {
      "birds/1.jpg": photo,
      "birds/2.jpg": PICTURES[1],
      "birds/broken.jpg": jpeg.subarray(0, jpeg.length / 2),
      "fish/1.webp": PICTURES[4],
      "fish/2.png": drawing,
      "notes.txt": Buffer.from("Dear diary"),
      ".hidden": Buffer.from("settings"),
    });
    const before = requests.length;
    await makeOwn(page, root);
    await waitForResults(page);
    assert.equal(
      await page.getAttribute("[data-testid=own]", "data-count"),
      "4",
    );
    await page.click("[data-testid=damaged] summary");
    assert.match(
      await page.innerText("[data-testid=damaged]"),
      /1 picture could not be read.*birds\/broken\.jpg/s,
    );
    assert.match(
      await page.innerText("[data-testid=own]"),
      /1 other file was left out/,
    );
    assert.deepEqual((await results(page)).length, 3);
    const hAp = Number(
      await page.getAttribute("[data-metric=h_ap]", "data-value"),
    );
    assert.ok(hAp > 0 && hAp <= 1);
    assert.deepEqual(
      requests.slice(before).filter((url) => !url.startsWith("blob:")),
      [],
      "embedding own pictures requests something",
    );
    assert.deepEqual(await axeProblems(page), []);

    // Another encoder embeds the pictures first.
    await page.check(`[data-testid=encoders] [value=${second}]`, {
      force: true,
    });
    await page.waitForSelector(
      `[data-testid=ranking][data-encoder=${second}][aria-busy=false]`,
    );
    assert.deepEqual((await results(page)).length, 3);

    // The bundle and back again.
    await page.check("[data-testid=galleries] [value='bundle/']", {
      force: true,
    });
    await title(page, "Creatures");
    await waitForResults(page);
    await page.check("[data-testid=galleries] [value=own]", { force: true });
    await title(page, "holiday");
    await waitForResults(page);
    assert.deepEqual((await results(page)).length, 3);

    // A killed engine gets the gallery again.
    await page.workers()[0].evaluate(() => self.close());
    await page.waitForFunction(() =>
      document
        .querySelector("[data-testid=backend-reason]")
        ?.textContent.includes("restarted"),
    );
    await page.waitForSelector("[data-testid=status][data-state=ready]");
    await waitForResults(page);
    assert.equal(
      await page.getAttribute("[data-testid=own]", "data-count"),
      "4",
    );
  }));

test("an own picture beside deeper folders has an unknown subfolder, which it may share", () =>
  visit({ query: `?encoder=${first}` }, async (page) => {
    const root = photos("uneven", {
      "birds/owls/1.jpg": photo,
      "birds/2.jpg": PICTURES[1],
      "fish/cod/1.webp": PICTURES[4],
      "fish/cod/2.png": drawing,
    });
    await makeOwn(page, root);
    await waitForResults(page);
    const cards = await page.$$eval(".result", (cards) =>
      cards.map((card) => [
        card.querySelector(".name").textContent,
        card.querySelector(".relation").textContent.trim(),
      ]),
    );
    const unknown = cards.filter(
      ([name]) => name === "birds (subfolder unknown)",
    );
    assert.deepEqual(
      unknown.map(([, relation]) => relation),
      ["same folder, perhaps same subfolder"],
      JSON.stringify(cards),
    );
    assert.equal((await page.$$(".result .ring .perhaps")).length, 1);
    assert.deepEqual(await axeProblems(page), []);
  }));

test("own pictures without subfolders have neither labels nor scores nor rings", () =>
  visit({}, async (page) => {
    await makeOwn(
      page,
      photos("flat", {
        "1.jpg": photo,
        "2.webp": PICTURES[4],
        "3.png": drawing,
      }),
    );
    await waitForResults(page);
    assert.deepEqual(
      new Set((await results(page)).map(({ shared }) => shared)),
      new Set(["unknown"]),
    );
    assert.equal(
      await page.$$eval(
        "akin-app :is([data-metric], .ring, .legend)",
        ({ length }) => length,
      ),
      0,
    );
    assert.match(
      await page.innerText("[data-testid=results]"),
      /\.(jpg|webp|png)/,
    );
    await upload(page, "own.jpg", readFileSync(photo));
    await waitForRankings(page, "image:own.jpg");
    assert.equal(await page.$("[data-testid=votes]"), null);
    assert.equal((await results(page))[0].item, "0");
  }));

test("a picture that is unlike everything in the gallery is told so before the votes", () =>
  visit({}, async (page) => {
    // Copies of one photo: every other picture is less like them than they are like one another.
    await makeOwn(
      page,
      photos("copies", {
        "a/1.jpg": photo,
        "a/2.jpg": photo,
        "b/1.jpg": photo,
      }),
    );
    await waitForResults(page);
    await upload(page, "drawing.png", readFileSync(drawing));
    await waitForRankings(page, "image:drawing.png");
    const note = await page.waitForSelector("[data-testid=unlike]");
    assert.match(await note.innerText(), /Unlike anything in this gallery/);
    const { best, below } = await note.$eval("[data-best]", ({ dataset }) => ({
      ...dataset,
    }));
    assert.ok(Number(best) < Number(below), `${best} and ${below}`);
    const comesFirst = await page.evaluate(() => {
      const [note, votes] = ["unlike", "votes"].map((id) =>
        document.querySelector(`[data-testid=${id}]`),
      );
      return Boolean(
        note.compareDocumentPosition(votes) & Node.DOCUMENT_POSITION_FOLLOWING,
      );
    });
    assert.ok(comesFirst && (await page.$("[data-testid=votes][data-unlike]")));
    assert.equal(await page.$("[data-testid=answer]"), null);
    assert.match(
      await page.innerText("[data-testid=status]"),
      /unlike anything in the gallery/,
    );
    assert.deepEqual(
      new Set((await results(page)).map(({ shared }) => shared)),
      new Set(["unknown"]),
    );
    assert.deepEqual(await axeProblems(page), []);
    // Another gallery is a click away, with the same query.
    await page.click("[data-testid=unlike] button:has-text('Half')");
    await title(page, "Half");
    await waitForRankings(page, "image:drawing.png");
  }));

test("a photo that is like the gallery gets its votes alone", () =>
  visit({}, async (page) => {
    await makeOwn(
      page,
      photos("copies", {
        "a/1.jpg": photo,
        "a/2.jpg": photo,
        "b/1.jpg": photo,
      }),
    );
    await waitForResults(page);
    await upload(page, "photo.jpg", readFileSync(photo));
    await waitForRankings(page, "image:photo.jpg");
    assert.equal(await page.$("[data-testid=unlike]"), null);
    assert.ok(await page.$("[data-testid=votes]:not([data-unlike])"));
    // Three pictures promise nothing, and the page says so beside what is probable.
    const answer = await page.waitForSelector("[data-testid=answer]");
    const text = (await answer.innerText()).replace(/\s+/g, " ");
    assert.match(
      text,
      /^Nothing is sure; probably a \(\d+ %\)\. Of the 3 nearest pictures, 2 are a\./,
    );
    assert.match(text, /too small, or too hard, .* at 95 %/);
    await page.selectOption("[data-testid=promise]", "0.8");
    await page.waitForSelector("[data-testid=answer][data-promise='0.8']");
  }));

test("an embedding can be cancelled, and a folder without photos is refused", () =>
  visit({}, async (page) => {
    const many = Object.fromEntries(
      Array.from({ length: 400 }, (_, index) => [`${index}.jpg`, photo]),
    );
    await page.click("[data-testid=own-entry] summary");
    await page.setInputFiles("[data-testid=own-folder]", photos("many", many));
    await page.click("[data-testid=cancel]");
    await page.waitForSelector("[data-testid=embedding]", {
      state: "detached",
    });
    assert.equal(await page.$("[data-testid=own]"), null);
    assert.ok(!(await galleries(page)).includes("own"));

    await makeOwn(
      page,
      photos("letters", { "a.txt": Buffer.from("Dear akin") }),
    );
    const { code, text } = await waitForNotice(page);
    assert.equal(code, "image");
    assert.match(text, /“letters” has no photos/);
  }));
