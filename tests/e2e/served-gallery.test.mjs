// A gallery of one's own pictures from the first command to the page, as the guide says it: made, changed, searched, served.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import { akin, fixture, openSite, upload, waitForRankings } from "./site.mjs";

const folder = mkdtempSync(join(tmpdir(), "akin-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const photos = join(folder, "photos");
const gallery = join(folder, "pictures.gallery");
const run = (...options) =>
  execFileSync(akin, options, {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
const search = (...options) =>
  JSON.parse(run("search", gallery, ...options, "--json")).items;
const items = (found) => found.map(({ item }) => item);

cpSync(fixture("data/images"), photos, { recursive: true });
const files = readdirSync(photos, { recursive: true })
  .filter((file) => file.endsWith(".png"))
  .sort();
const [kept, removed, added] = [files[0], files[20], files[40]].map((file) =>
  join(photos, file),
);

// Made without a picture that comes later.
const later = readFileSync(added);
rmSync(added);
run(
  "index",
  fixture("runs/HAPPIER"),
  photos,
  "--out",
  gallery,
  "--levels",
  "order,family,species",
);

const count = () => search("--near", "0", "-k", "1000").length + 1;
const counts = [count()];
const [ofItself] = search(kept, "-k", "1");
run("index", gallery, "--remove", removed);
counts.push(count());
cpSync(fixture("data/images", files[40]), added);
run("index", gallery, "--add", photos);
counts.push(count());
rmSync(removed);
run("index", gallery, "--refresh");
counts.push(count());

const { visit, address } = await openSite("cpu", [], [gallery]);

test("a gallery follows its folder, and a picture finds itself", () => {
  const all = files.length;
  assert.deepEqual(counts, [all - 1, all - 2, all, all - 1]);
  assert.equal(ofItself.path, resolve(kept));
  const [{ path, score }] = search(added, "-k", "1");
  assert.equal(path, resolve(added));
  assert.ok(score > 0.9999, `the cosine is ${score}`);
});

test("the page and programs find in a served gallery what the search finds", async () => {
  const expected = items(search(added, "-k", "10"));
  const ask = (path, options) => fetch(new URL(path, address), options);
  const answer = await ask("search?count=10", {
    method: "POST",
    headers: { "Content-Type": "image/png" },
    body: later,
  });
  assert.equal(answer.status, 200);
  const found = (await answer.json()).items;
  assert.deepEqual(items(found), expected);
  assert.ok(found.every(({ path, thumbnail }) => !path && thumbnail));
  const thumbnail = await ask(found[0].thumbnail);
  assert.equal(thumbnail.headers.get("content-type"), "image/jpeg");

  await visit({ query: "?q=0" }, async (page, requests) => {
    await waitForRankings(page, "item:0");
    await upload(page, "added.png", later);
    await waitForRankings(page, "image:added.png");
    const shown = await page.$$eval("[data-testid=results] > li", (found) =>
      found.slice(0, 10).map(({ dataset }) => Number(dataset.item)),
    );
    // The weights of the page have half precision.
    assert.equal(shown[0], expected[0]);
    assert.ok(
      shown.filter((item) => expected.includes(item)).length >= 8,
      `${shown}, but ${expected}`,
    );
    assert.ok(
      !requests.some((url) => new URL(url).pathname === "/search"),
      "the page embeds by itself",
    );
  });
});
