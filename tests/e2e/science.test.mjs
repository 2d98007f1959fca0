// The science module in the browser against core: science.json is what core computes natively, written and
// checked by tests/tests/science.rs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { openViews } from "./views.mjs";

const { visit } = await openViews();
const cases = JSON.parse(
  readFileSync(new URL("science.json", import.meta.url), "utf8"),
);

/** Calls the module with `parameters` in the page. */
const withScience = (page, parameters, call) =>
  page.evaluate(
    async ([parameters, call]) => {
      const science = await import(new URL("akin-science.js", location.href));
      await science.default();
      // The page's security policy forbids `eval`, so the call is a name of the table below.
      const calls = {
        all: (cases) =>
          cases.map(({ ranking, settings, move: { from, to } }) => ({
            scores: science.score(ranking, settings),
            move: science.move(ranking, settings, from, to),
            orders: Object.fromEntries(
              ["ideal", "best_same_ap", "worst_same_ap"].map((goal) => [
                goal,
                science.order(ranking, settings, goal),
              ]),
            ),
          })),
        failures: (calls) =>
          calls.map(([name, ...values]) => {
            try {
              return { result: science[name](...values) };
            } catch (error) {
              return error;
            }
          }),
        times: ({ ranking, settings, count }) =>
          Array.from({ length: count }, (_, index) => {
            const size = ranking.levels.length;
            const began = performance.now();
            science.move(ranking, settings, index % size, (index * 37) % size);
            return performance.now() - began;
          }),
      };
      return calls[call](parameters);
    },
    [parameters, call],
  );

function near(actual, expected, what) {
  if (Array.isArray(expected)) {
    assert.equal(actual?.length, expected.length, what);
    expected.forEach((value, index) =>
      near(actual[index], value, `${what}[${index}]`),
    );
  } else if (expected === null) assert.equal(actual, null, what);
  else
    assert.ok(
      Math.abs(actual - expected) <= 1e-9,
      `${what}: ${actual} in the browser, ${expected} by core`,
    );
}

const sum = (values) => values.reduce((sum, value) => sum + value, 0);

test("the scores of 200 random rankings and of every example equal core's", () =>
  visit({ query: "?view=playground" }, async (page) => {
    const results = await withScience(page, cases, "all");
    assert.ok(results.length >= 200);
    results.forEach(({ scores, move, orders }, index) => {
      const expected = cases[index];
      const which = `ranking ${index}`;
      for (const [name, value] of Object.entries(expected.scores))
        near(scores[name], value, `${which}, ${name}`);
      const h_ranks = scores.items.map(({ h_rank }) => h_rank);
      near(h_ranks, expected.h_ranks, `${which}, H-ranks`);
      const contributions = scores.items.map(
        ({ contribution }) => contribution,
      );
      near(sum(contributions), scores.h_ap ?? 0, `${which}, contributions`);

      near(move.before.h_ap, expected.scores.h_ap, `${which}, before`);
      near(move.after.h_ap, expected.move.h_ap, `${which}, after`);
      assert.deepEqual(move.ranking.levels, expected.move.levels);
      assert.deepEqual(move.ranking.ties ?? null, expected.move.ties);
      const deltas = move.swaps?.map(({ delta }) => delta) ?? null;
      near(deltas, expected.move.swaps, `${which}, swaps`);
      if (deltas) near(sum(deltas), move.delta, `${which}, sum of swaps`);
      assert.deepEqual(orders, expected.orders);
    });
  }));

test("every example of the playground shows core's scores", () =>
  visit({ query: "?view=playground" }, async (page) => {
    await page.waitForSelector("[data-preset]");
    const names = await page
      .locator("[data-preset]")
      .evaluateAll((all) => all.map(({ dataset }) => dataset.preset));
    assert.ok(names.length > 0);
    for (const name of names) {
      const expected = cases.filter(({ preset }) => preset === name);
      assert.ok(expected.length > 0, `science.json lacks the example ${name}`);
      await page.locator(`[data-preset="${name}"]`).click();
      for (const [which, { scores }] of expected.entries()) {
        const shown = {
          h_ap: scores.h_ap,
          ndcg: scores.ndcg,
          asi: scores.asi,
          mistake_severity: scores.mistake_severity,
        };
        scores.ap.forEach((ap, index) => (shown[`ap-${index + 1}`] = ap));
        for (const [metric, value] of Object.entries(shown)) {
          const cell = page.locator(
            `[data-${which === 0 ? "metric" : "metric2"}="${metric}"]`,
          );
          near(
            Number(await cell.first().getAttribute("data-value")),
            value,
            `${name}, ranking ${which + 1}, ${metric}`,
          );
        }
      }
    }
  }));

test("wrong input is refused with a code, a message and a hint", () =>
  visit({ query: "?view=playground" }, async (page) => {
    const ranking = { depth: 3, levels: [2, 3, 0] };
    const settings = {
      relevance: { kind: "plain", alpha: 1 },
      ties: "stable",
      count_query: false,
    };
    const wrong = [
      ["score", undefined, settings],
      ["score", {}, settings],
      ["score", { depth: 3, levels: [4] }, settings],
      ["score", { depth: 3, levels: [1.5] }, settings],
      ["score", { depth: 3, levels: [-1] }, settings],
      ["score", { depth: 3, levels: [NaN] }, settings],
      ["score", { depth: 0, levels: [] }, settings],
      ["score", { depth: 1e9, levels: [1] }, settings],
      ["score", { ...ranking, ties: [0] }, settings],
      ["score", { ...ranking, ties: [2, 1, 0] }, settings],
      ["score", ranking, { ...settings, ties: "none" }],
      ["score", ranking, { ...settings, relevance: { kind: "other" } }],
      [
        "score",
        ranking,
        { ...settings, relevance: { kind: "plain", alpha: -1 } },
      ],
      [
        "score",
        ranking,
        { ...settings, relevance: { kind: "weighted_ap", weights: [1] } },
      ],
      ["move", ranking, settings, 0, 3],
      ["move", ranking, settings, -1, 0],
      ["order", ranking, settings, "other"],
      ["pair", { depth: 9, size: 19, ap: 0.9, h_ap: [0.9, 0.7] }],
      [
        "pair",
        {
          depth: 3,
          size: 1e9,
          ap: 0.9,
          h_ap: [0.9, 0.7],
          relevance: settings.relevance,
        },
      ],
    ];
    const failures = await withScience(page, wrong, "failures");
    failures.forEach(({ code, message, hint }, index) => {
      assert.equal(code, "config", JSON.stringify(wrong[index]));
      assert.ok(message && hint, JSON.stringify(wrong[index]));
    });
    const [empty] = await withScience(
      page,
      [["score", { depth: 2, levels: [] }, settings]],
      "failures",
    );
    assert.equal(empty.result.h_ap, null);
  }));

test("a move in a ranking of 200 items is scored in less than 4 ms", (t) =>
  visit({ query: "?view=playground" }, async (page) => {
    const levels = Array.from({ length: 200 }, (_, i) => (i * 7919) % 4);
    const settings = {
      relevance: { kind: "hierarchical_ap", alpha: 1 },
      ties: "stable",
      count_query: false,
    };
    const request = { ranking: { depth: 3, levels }, settings, count: 201 };
    const times = await withScience(page, request, "times");
    const median = times.sort((a, b) => a - b)[100];
    t.diagnostic(`the median is ${median.toFixed(2)} ms`);
    assert.ok(median < 4, `${median} ms`);
  }));
