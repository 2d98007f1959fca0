// Every view and every part of the lesson can be read, at every width and in both themes, wherever the reader has
// scrolled to: no text lies over another one or under something, and nothing is cut.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { openEveryView } from "./every-view.mjs";
import { illegible } from "./legible.mjs";

const WINDOWS = [
  { width: 360, height: 740 },
  { width: 768, height: 900 },
  { width: 1280, height: 900 },
  { width: 1600, height: 900 },
];
const THEMES = ["light", "dark"];

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
  const thrown = await visit(query, WINDOWS[0], async (page) => {
    await act(page);
    await page
      .waitForLoadState("networkidle", { timeout: 5000 })
      .catch(() => undefined);
    for (const window of WINDOWS) {
      await page.setViewportSize(window);
      for (const theme of THEMES) {
        await page.emulateMedia({ colorScheme: theme });
        const problems = await illegible(page);
        found.push(
          ...problems.map(
            (problem) => `at ${window.width} px, ${theme}: ${problem}`,
          ),
        );
      }
    }
  });
  assert.deepEqual(thrown, []);
  assert.ok(found.length === 0, found.join("\n"));
}
