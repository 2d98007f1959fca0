// A bundle in a folder on the reader's device, or at an address of the same site.
import assert from "node:assert/strict";
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import {
  axeProblems,
  fixture,
  openSite,
  waitForNotice,
  waitForRankings,
} from "./site.mjs";

const { strToU8, zipSync } = createRequire(
  new URL("../../www/package.json", import.meta.url),
)("fflate");

const { visit } = await openSite("cpu");
const folder = mkdtempSync(join(tmpdir(), "akin-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const scores = (page) =>
  page.$$eval("[data-metric]", (cells) =>
    cells.map(({ dataset }) => [dataset.metric, dataset.value]),
  );
const openEntry = (page) => page.click("[data-testid=bundle-entry] summary");
const chooseFolder = async (page, path) => {
  await openEntry(page);
  await page.setInputFiles("[data-testid=bundle-folder]", path);
};

test("a chosen folder shows the same scores as the bundle on the server, without a request", () =>
  visit({ query: "?q=5" }, async (page, requests) => {
    await waitForRankings(page, "item:5");
    const before = await scores(page);
    await openEntry(page);
    assert.deepEqual(await axeProblems(page), []);
    requests.length = 0;
    await page.setInputFiles("[data-testid=bundle-folder]", fixture("bundle"));
    await page.waitForSelector(
      "[data-testid=galleries] input[value='local:bundle']:checked",
    );
    await page.waitForSelector("[data-testid=status][data-state=ready]");
    await page.click(".samples [data-item='5']");
    await waitForRankings(page, "item:5");
    assert.deepEqual(await scores(page), before);
    assert.equal(await page.$("akin-thumb[data-failed]"), null);
    const fetched = requests.filter(
      (url) =>
        !url.startsWith("blob:") &&
        !/\/(akin-web|build\/)/.test(new URL(url).pathname),
    );
    assert.deepEqual(fetched, []);
    // The folder cannot be part of a link.
    await page.reload();
    const { code, text } = await waitForNotice(page);
    assert.equal(code, "bundle");
    assert.match(text, /not open any more.*Choose the folder again/);
  }));

test("a folder without a bundle, or with a damaged one, is refused by name", async () => {
  const empty = join(folder, "letters");
  const damaged = join(folder, "damaged");
  cpSync(fixture("bundle"), damaged, { recursive: true });
  writeFileSync(join(damaged, "labels.bin"), "no labels");
  cpSync(fixture("bundle", "labels.bin"), join(empty, "labels.bin"), {
    recursive: true,
  });
  await visit({}, async (page) => {
    await chooseFolder(page, empty);
    assert.match(
      (await waitForNotice(page)).text,
      /“letters” holds no bundle\.json/,
    );
    await chooseFolder(page, damaged);
    await page.waitForSelector("[data-testid=status][data-state=error]");
    assert.match(await page.innerText("main"), /labels\.bin/);
  });
});

test("an address on the same site opens another bundle, and one elsewhere is refused", () =>
  visit({}, async (page) => {
    await openEntry(page);
    await page.fill("[data-testid=bundle-address]", "bundles/half");
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      () =>
        new URL(location.href).searchParams.get("bundle") === "bundles/half",
    );
    await page.waitForSelector("[data-testid=status][data-state=ready]");
    await openEntry(page);
    await page.fill(
      "[data-testid=bundle-address]",
      "https://example.org/bundle/",
    );
    await page.keyboard.press("Enter");
    assert.equal((await waitForNotice(page)).code, "origin");
  }));

/** The files of the bundle, to be packed, with those of `changes` instead. */
function bundleFiles(changes = {}, prefix = "") {
  const files = readdirSync(fixture("bundle"), {
    recursive: true,
    withFileTypes: true,
  })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const own = files.map((file) => [
    file.slice(fixture("bundle").length + 1),
    readFileSync(file),
  ]);
  return Object.fromEntries(
    [...own, ...Object.entries(changes)].map(([path, bytes]) => [
      prefix + path,
      bytes,
    ]),
  );
}

const pack = (name, files) => {
  const path = join(folder, name);
  writeFileSync(path, zipSync(files, { level: 1 }));
  return path;
};

/** Drops files or folders of this device on the page, as a reader would. */
async function drop(page, path) {
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files: [path], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"])
    await session.send("Input.dispatchDragEvent", {
      type,
      x: 200,
      y: 300,
      data,
    });
}

const opened = async (page, name) => {
  await page.waitForSelector(
    `[data-testid=galleries] input[value='local:${name}']:checked`,
  );
  await page.waitForSelector("[data-testid=status][data-state=ready]");
  assert.equal(await page.$("akin-thumb[data-failed]"), null);
};

test("a folder and an archive can be dropped, and give the scores of the bundle on the server", () =>
  visit({ query: "?q=5" }, async (page) => {
    await waitForRankings(page, "item:5");
    const before = await scores(page);
    const archive = pack("packed.zip", bundleFiles({}, "some/folder/"));
    for (const [path, name] of [
      [fixture("bundle"), "bundle"],
      [archive, "packed"],
    ]) {
      await drop(page, path);
      await opened(page, name);
      await page.click(".samples [data-item='5']");
      await waitForRankings(page, "item:5");
      assert.deepEqual(await scores(page), before);
    }
  }));

test("an archive can be chosen, and what it holds beside the bundle is not unpacked", () =>
  visit({}, async (page) => {
    const beside = { "notes/huge.bin": new Uint8Array(50_000_000) };
    await openEntry(page);
    await page.setInputFiles(
      "[data-testid=bundle-archive]",
      pack("chosen.zip", bundleFiles(beside)),
    );
    await opened(page, "chosen");
  }));

test("an archive is refused that leads outside, holds more than it says, is damaged, or holds no bundle", () =>
  visit({}, async (page) => {
    await page.waitForSelector("[data-testid=status][data-state=ready]");
    const damaged = readFileSync(pack("whole.zip", bundleFiles()));
    const cut = join(folder, "cut.zip");
    writeFileSync(cut, damaged.subarray(0, damaged.length / 2));
    const noise = join(folder, "noise.zip");
    writeFileSync(noise, Buffer.alloc(10_000, "noise"));
    const outside = { "../outside.txt": strToU8("outside") };
    const bomb = { "labels.bin": new Uint8Array(20_000_000) };
    const manifest = { "bundle.json": strToU8("{}") };
    for (const [path, message] of [
      [pack("outside.zip", bundleFiles(outside)), /outside of itself/],
      [pack("bomb.zip", bundleFiles(bomb)), /labels\.bin.*is larger than/],
      [pack("empty.zip", { "readme.txt": strToU8("hi") }), /no bundle\.json/],
      [pack("unnamed.zip", bundleFiles(manifest)), /names no files/],
      [cut, /cannot be read/],
      [noise, /holds no bundle\.json|cannot be read/],
    ]) {
      await page.setInputFiles("[data-testid=bundle-archive]", path);
      await page.waitForFunction(
        ([source]) =>
          new RegExp(source, "s").test(
            document.querySelector("[data-testid=notice]")?.innerText ?? "",
          ),
        [message.source],
      );
      assert.equal((await waitForNotice(page)).code, "bundle");
      assert.equal(
        await page.getAttribute("[data-testid=status]", "data-state"),
        "ready",
      );
    }
  }));
