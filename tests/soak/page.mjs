// Asks the page 1,000 times in one tab and fails if its memory grows. Environment as in tests/e2e/site.mjs.
// Usage: node page.mjs [QUERIES]
import { readFileSync } from "node:fs";
import { PICTURES } from "../e2e/fixture.mjs";
import {
  launch,
  serve,
  upload,
  waitForRankings,
  waitForResults,
} from "../e2e/site.mjs";

const queries = Number(process.argv[2] ?? 1000);
/** One query in this number is a picture of the reader, which the encoder embeds. */
const PICTURE_EVERY = 10;

const { address, stop } = await serve();
const browser = await launch("cpu");
const context = await browser.newContext({ serviceWorkers: "block" });
// Keeps the memory of the engine where it can be measured.
await context.route("**/build/worker.js", async (route) => {
  const response = await route.fetch();
  const keep = `{
    const instantiate = WebAssembly.instantiate;
    WebAssembly.instantiate = async (...values) => {
      const made = await instantiate(...values);
      self.akinMemory = (made.instance ?? made).exports.memory;
      return made;
    };
  }`;
  await route.fulfill({ response, body: `${keep}\n${await response.text()}` });
});
const page = await context.newPage();
page.setDefaultTimeout(180_000);
await page.goto(address);
await waitForResults(page);
const client = await context.newCDPSession(page);

async function measure() {
  await client.send("HeapProfiler.collectGarbage");
  const { usedSize } = await client.send("Runtime.getHeapUsage");
  const { nodes } = await client.send("Memory.getDOMCounters");
  const engine = await page
    .workers()[0]
    .evaluate(() => self.akinMemory.buffer.byteLength);
  return { heap: usedSize / 1e6, nodes, engine: engine / 1e6 };
}

const items = await page.$$eval(".samples [data-item]", (buttons) =>
  buttons.map(({ dataset }) => dataset.item),
);
let asked = 0;
async function ask() {
  const number = asked++;
  if (number % PICTURE_EVERY === 0) {
    const path = PICTURES[(number / PICTURE_EVERY) % PICTURES.length];
    await upload(page, `${number}.jpg`, readFileSync(path));
    await waitForRankings(page, `image:${number}.jpg`);
  } else {
    const item = items[number % items.length];
    await page.locator(`.samples [data-item="${item}"]`).first().click();
    await waitForRankings(page, `item:${item}`);
  }
}

// Every picture and every sample once, so that all that is kept for good is there.
const warm = PICTURE_EVERY * PICTURES.length;
while (asked < warm) await ask();
const before = await measure();
while (asked < warm + queries) await ask();
const after = await measure();
await browser.close();
stop();

const both = (key, digits) =>
  `${before[key].toFixed(digits)} and ${after[key].toFixed(digits)}`;
console.log(
  `figure: queries in one tab, one in ${PICTURE_EVERY} an own picture: ${queries.toLocaleString("en")}`,
);
console.log(
  `figure: script memory of the page before and after these queries: ${both("heap", 1)} MB`,
);
console.log(
  `figure: memory of the engine before and after these queries: ${both("engine", 1)} MB`,
);
console.log(
  `figure: nodes of the page before and after these queries: ${both("nodes", 0)}`,
);
for (const [key, spare] of [
  ["heap", 1],
  ["engine", 0],
  ["nodes", 200],
]) {
  if (after[key] > 1.1 * before[key] + spare)
    throw new Error(`${key} has grown: ${both(key, 1)}`);
}
