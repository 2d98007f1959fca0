// Every view and every part of the lesson can be read, at every width and in both themes, wherever the reader has
// scrolled to: no text lies over another one or under something, and nothing is cut.
//
// A theme moves nothing, but what lies over a text may be opaque in one theme only. So one width is enough for the
// dark theme.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { openEveryView } from "./every-view.mjs";
import { illegible } from "./legible.mjs";

const WINDOWS = [
  { size: { width: 360, height: 740 }, theme: "light" },
  { size: { width: 768, height: 900 }, theme: "light" },
  { size: { width: 1280, height: 900 }, theme: "light" },
  { size: { width: 1280, height: 900 }, theme: "dark" },
  { size: { width: 1600, height: 900 }, theme: "light" },
];

const { views, visit, close } = await openEveryView();
after(close);

// The examples of the training ground differ in their settings only, and each of them trains.
const isTraining = ({ name }) => name.startsWith("training-");
const read = views.filter(
  (view) => !isTraining(view) || view === views.find(isTraining),
);

describe("every text can be read", { concurrency: 2 }, () => {
  for (const view of read) test(view.name, () => readView(view));
});

async function readView({ query, act }) {
  const found = [];
  const thrown = await visit(query, WINDOWS[0].size, async (page) => {
    await act(page);
    await page
      .waitForLoadState("networkidle", { timeout: 5000 })
      .catch(() => undefined);
    for (const { size, theme } of WINDOWS) {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme: theme });
      const problems = await illegible(page);
      found.push(
        ...problems.map(
          (problem) => `at ${size.width} px, ${theme}: ${problem}`,
        ),
      );
    }
  });
  assert.deepEqual(thrown, []);
  assert.ok(found.length === 0, found.join("\n"));
}
