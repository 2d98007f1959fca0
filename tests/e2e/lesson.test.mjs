// The lesson: every task can be solved by moving items, and refuses a wrong answer with a reason.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axeProblems, openViews } from "./views.mjs";

const { visit } = await openViews();

/** A ranking of the reader's own, as the search view leaves it. */
const OWN = {
  encoder: "HAPPIER",
  query: "Granny Smith",
  levels: ["department", "kind", "variety"],
  shared: [3, 0, 3, 2, 0, 1, 3, 2, 0, 0, 1],
  names: [
    "Granny Smith",
    "milk",
    "Granny Smith",
    "Royal Gala",
    "oat milk",
    "pear",
    "Granny Smith",
    "Pink Lady",
    "juice",
    "cream",
    "plum",
  ],
  of: 480,
};

const open = (part, check, options = {}) =>
  visit({ ...options, query: `?view=lesson&part=${part}` }, async (page) => {
    await page.waitForFunction(
      () =>
        document
          .querySelector("akin-lesson")
          ?.shadowRoot.querySelector("akin-playground")?.scores.length > 0,
    );
    await check(page);
  });

const state = (page) => page.getByTestId("task").getAttribute("data-state");
const verdict = async (page) =>
  (await page.getByTestId("verdict").innerText()).replaceAll(/\s+/g, " ");
/** Moves an item of a ranking by its arrow; ranks from 1. */
async function move(page, from, to, which = 0) {
  const item = await page
    .locator(`.items[data-which="${which}"] .item`)
    .nth(from - 1)
    .getAttribute("data-item");
  for (let rank = from; rank !== to; rank += Math.sign(to - from)) {
    await page
      .locator(
        `.items[data-which="${which}"] .item[data-item="${item}"] [data-by="${Math.sign(to - from)}"]`,
      )
      .click();
  }
}
/** Moves an item as one drag does. */
const drag = (page, from, to) =>
  page.evaluate(
    ([from, to]) =>
      document
        .querySelector("akin-lesson")
        .shadowRoot.querySelector("akin-playground")
        .moveItem(0, from - 1, to - 1),
    [from, to],
  );
const setAlpha = (page, alpha) =>
  page.locator("[name=alpha]").fill(String(alpha));

const TASKS = [
  {
    wrong: (page) => move(page, 2, 1),
    reason:
      /Rank 2 has one of the same family, and a right result still stands below it/,
    right: (page) => move(page, 5, 2),
  },
  {
    wrong: (page) => move(page, 2, 1),
    reason: /ranks 1 and 5, so AP is \(1\/1 \+ 2\/5\) \/ 2 = 0\.700/,
    right: (page) => move(page, 5, 4),
  },
  {
    wrong: (page) => move(page, 4, 1, 1),
    reason: /its AP is 0\.367\. They must be at ranks 2 and 5/,
    right: (page) => move(page, 3, 2, 1),
  },
  {
    wrong: (page) => move(page, 2, 1),
    reason: /Rank 3 has relevance 0, but rank 4 below it has 0\.67/,
    async right(page) {
      await move(page, 5, 2);
      await move(page, 5, 3);
      assert.match(
        await verdict(page),
        /They are sorted\. .* not less than 1\. Now change α/,
      );
      await setAlpha(page, 2);
    },
  },
  {
    wrong: (page) => move(page, 1, 2),
    reason:
      /It gives 1 \/ 4 = 0\.25\. The stranger above it takes a rank and adds nothing/,
    right: (page) => move(page, 3, 4),
  },
  {
    wrong: (page) => move(page, 4, 3),
    reason: /A smaller one has the same AP/,
    async right(page) {
      await drag(page, 4, 1);
      await drag(page, 3, 2);
      await drag(page, 4, 3);
    },
  },
  {
    wrong: (page) => move(page, 4, 5),
    reason: /AP went from 0\.583 to 0\.583 and H-AP from 0\.628 to 0\.6\d\d/,
    async right(page) {
      await page.getByRole("button", { name: "Start again" }).click();
      await move(page, 2, 3);
    },
  },
  {
    wrong: (page) => drag(page, 5, 3),
    reason: /H-AP has risen, but AP must fall/,
    async right(page) {
      await page.getByRole("button", { name: "Start again" }).click();
      await drag(page, 5, 2);
    },
  },
  {
    wrong: (page) => drag(page, 1, 15),
    reason: /It must rise/,
    async right(page) {
      await page.getByRole("button", { name: "Start again" }).click();
      await drag(page, 3, 15);
    },
  },
];

for (const [index, { wrong, reason, right }] of TASKS.entries()) {
  test(`the task of part ${index + 1} refuses a wrong answer, and can be solved`, () =>
    open(index + 1, async (page) => {
      assert.equal(await state(page), "open");
      assert.ok(
        (await page.getByTestId("hint").locator("p").textContent()).length > 40,
      );
      await wrong(page);
      assert.equal(await state(page), "wrong");
      assert.match(await verdict(page), reason);
      await right(page);
      assert.equal(await state(page), "solved", await verdict(page));
      assert.match(await verdict(page), /^Solved\./);
      assert.equal(
        await page.getByTestId("next").count(),
        index === TASKS.length - 1 ? 0 : 1,
      );
      assert.equal(await page.locator("[data-solved=true]").count(), 1);
    }));
}

test("a reader goes from part to part, and each has an address of its own", () =>
  open(1, async (page) => {
    await move(page, 2, 1);
    await move(page, 5, 2);
    await page.getByTestId("next").click();
    await page.waitForURL(/view=lesson&part=2$/);
    assert.match(await page.locator("akin-lesson h1").innerText(), /^AP/);
    assert.equal(await state(page), "open");
    await page.goBack();
    assert.match(
      await page.locator("akin-lesson h1").innerText(),
      /^What a search returns/,
    );
    await page.reload();
    await page.waitForSelector("[data-solved=true]");
  }));

test("every part shows its title beside its number", () =>
  open(1, async (page) => {
    const links = page.locator("akin-lesson nav.parts a");
    assert.equal(await links.count(), TASKS.length);
    for (const link of await links.all()) {
      const title = (await link.innerText()).replace(/^\d\s*/, "");
      await link.click();
      await page
        .locator("akin-lesson h1")
        .getByText(title, { exact: true })
        .waitFor();
      assert.equal(await state(page), "open");
    }
  }));

test("the smallest area that part 6 names is the one that solves it", () =>
  open(6, async (page) => {
    await TASKS[5].wrong(page);
    await TASKS[5].right(page);
    const task = await page.locator("akin-lesson .task-text").innerText();
    assert.match(task, /done at H-AP 0\.580/);
    assert.match(await verdict(page), /from 0\.783 to 0\.580, the smallest/);
  }));

test("the columns of part 6 have the ranks and the colours of their results", () =>
  open(6, async (page) => {
    const columns = page.locator("akin-lesson .curve");
    assert.deepEqual(await columns.locator(".column-rank").allTextContents(), [
      "1",
      "2",
      "4",
      "5",
    ]);
    assert.deepEqual(
      await columns
        .locator(".area")
        .evaluateAll((all) => all.map(({ dataset }) => dataset.shared)),
      ["2", "3", "1", "3"],
    );
    const axes = await columns.locator(".axis").allTextContents();
    assert.deepEqual(
      axes.map((name) => name.trim()),
      ["H-recall", "H-precision"],
    );
  }));

test("part 7 shows the curves and moves of the loss that it recommends", () =>
  open(7, async (page) => {
    for (const loss of ["smooth_ap", "sup_ap", "hap_surrogate_text"])
      await page.locator(`akin-steps .panel[data-loss=${loss}]`).waitFor();
    const legend = page.locator("akin-steps [data-testid=step-chart]");
    assert.match(await legend.textContent(), /lower step of HAPPIER/);
  }));

test("the last part takes the reader's own ranking", () =>
  open(
    TASKS.length,
    async (page) => {
      assert.deepEqual(
        await page.locator(".item .name").allTextContents(),
        OWN.names,
      );
      assert.equal(
        await page.locator(".item .word").nth(3).innerText(),
        "same kind",
      );
      await drag(page, 2, 11);
      assert.equal(await state(page), "solved", await verdict(page));
    },
    {
      before: (context) =>
        context.addInitScript(
          (own) =>
            sessionStorage.setItem("akin-last-ranking", JSON.stringify([own])),
          OWN,
        ),
    },
  ));

test("the playground takes the reader's own ranking, too", () =>
  visit(
    {
      query: "?view=playground",
      before: (context) =>
        context.addInitScript(
          (own) =>
            sessionStorage.setItem("akin-last-ranking", JSON.stringify([own])),
          OWN,
        ),
    },
    async (page) => {
      await page.locator("[data-own=HAPPIER]").click();
      await page.waitForFunction(() =>
        document.querySelector("[data-testid=own]"),
      );
      assert.match(
        await page.locator("[data-testid=own]").innerText(),
        /The first 11 of 480 results for Granny Smith, as HAPPIER ranked them/,
      );
      assert.deepEqual(
        await page.locator(".item .name").allTextContents(),
        OWN.names,
      );
      await page.waitForURL(new RegExp(`ranking=${OWN.shared.join("")}`));
    },
  ));

for (const scheme of ["light", "dark"]) {
  test(`axe finds nothing in any part in ${scheme}`, async () => {
    for (let part = 1; part <= TASKS.length; part++) {
      await open(
        part,
        async (page) =>
          assert.deepEqual(await axeProblems(page), [], `part ${part}`),
        { scheme, width: part % 2 ? 360 : 1280 },
      );
    }
  });
}
