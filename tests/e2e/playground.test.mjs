// The playground: what its scores are, how its items are moved, and what its address holds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axeProblems, openViews } from "./views.mjs";

const { visit } = await openViews();

const open = (query, check, options = {}) =>
  visit({ ...options, query: `?view=playground${query}` }, async (page) => {
    await page.waitForSelector("[data-metric=h_ap]:not([data-value=''])");
    await check(page);
  });

const value = async (page, metric, which = "metric") =>
  Number(
    await page
      .locator(`[data-${which}="${metric}"]`)
      .getAttribute("data-value"),
  );
const scores = async (page) => ({
  h_ap: await value(page, "h_ap"),
  ap: await value(page, "ap-3"),
});
/** The shared levels of the items in a ranking, when the page has drawn it. */
async function levels(page, which = 0) {
  await page.evaluate(async () => {
    for (let frame = 0; frame < 2; frame += 1)
      await new Promise(requestAnimationFrame);
  });
  return page
    .locator(`.items[data-which="${which}"] .item`)
    .evaluateAll((rows) => rows.map(({ dataset }) => Number(dataset.shared)));
}

/** Waits for a ranking: events of a pointer arrive with the next frames. */
async function expectLevels(page, expected) {
  const until = Date.now() + 5000;
  let shown = await levels(page);
  while (String(shown) !== String(expected) && Date.now() < until)
    shown = await levels(page);
  assert.deepEqual(shown, expected);
}
const near = (a, b, tolerance = 1e-9) =>
  assert.ok(Math.abs(a - b) < tolerance, `${a} is not ${b}`);

/** Naive transcriptions of HAPPIER, eq. 1 to 4. With `shared`, the items of a level share its relevance (eq. 4). */
function hAp(levels, { depth = 3, alpha = 1, shared = false } = {}) {
  const size = (level) =>
    shared ? levels.filter((other) => other === level).length : 1;
  const rel = levels.map((level) =>
    level === 0 ? 0 : (level / depth) ** alpha / size(level),
  );
  let sum = 0;
  rel.forEach((own, place) => {
    if (own === 0) return;
    const hRank =
      own +
      rel.slice(0, place).reduce((sum, other) => sum + Math.min(other, own), 0);
    sum += hRank / (place + 1);
  });
  return sum / rel.reduce((sum, own) => sum + own, 0);
}

function ap(levels, level = 3) {
  const ranks = levels.flatMap((of, place) => (of >= level ? [place + 1] : []));
  return (
    ranks.reduce((sum, rank, index) => sum + (index + 1) / rank, 0) /
    ranks.length
  );
}

test("the oracle agrees with the figures that HAPPIER prints", () => {
  near(hAp([2, 3, 0, 1, 3]), 0.78, 5e-3);
  near(hAp([1, 3, 0, 2, 3]), 0.67, 5e-3);
  near(ap([2, 3, 0, 1, 3]), 0.45);
});

test("a reader changes H-AP by keyboard alone while AP stays", () =>
  open("", async (page) => {
    const before = await scores(page);
    const isRow = () =>
      page.evaluate(() =>
        document
          .querySelector("akin-playground")
          .shadowRoot.activeElement?.matches(".grip"),
      );
    for (let pressed = 0; pressed < 60 && !(await isRow()); pressed++)
      await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Space");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await expectLevels(page, [2, 3, 1, 0, 3]);
    const after = await scores(page);
    assert.equal(after.ap, before.ap);
    assert.ok(after.h_ap > before.h_ap);
    assert.match(
      await page.locator("[data-testid=spoken]").textContent(),
      /^H-AP 0\.811, plus 0\.028\. AP 0\.450, the same\./,
    );
    assert.ok(await isRow(), "the focus has left the item");

    await page.keyboard.press("Enter");
    await page.keyboard.press("Home");
    await expectLevels(page, [1, 2, 3, 0, 3]);
    await page.keyboard.press("Escape");
    await expectLevels(page, [2, 3, 1, 0, 3]);
    near((await scores(page)).h_ap, after.h_ap);
    await page.keyboard.press("Enter");
    await page.keyboard.press("End");
    await page.keyboard.press("Tab");
    await expectLevels(page, [2, 3, 0, 3, 1]);
  }));

test("the arrows beside an item move it, and the focus stays with it", () =>
  open("", async (page) => {
    const row = page.locator('.item[data-item="3"]');
    await row.locator("[data-by='-1']").click();
    await page.keyboard.press("Enter");
    await expectLevels(page, [2, 1, 3, 0, 3]);
    await page.keyboard.press("Enter");
    await expectLevels(page, [1, 2, 3, 0, 3]);
    assert.equal(
      await page.evaluate(
        () =>
          document
            .querySelector("akin-playground")
            .shadowRoot.activeElement.closest(".item").dataset.item,
      ),
      "3",
    );
  }));

test("an item is dragged by mouse, and its scores follow before it falls", () =>
  open("", async (page) => {
    const from = await page.locator('.item[data-item="4"] .grip').boundingBox();
    const to = await page.locator('.item[data-item="0"]').boundingBox();
    await page.mouse.move(from.x + 20, from.y + 20);
    await page.mouse.down();
    await page.mouse.move(from.x + 20, to.y + 70, { steps: 4 });
    await page.mouse.move(from.x + 20, to.y + 20, { steps: 2 });
    near(await value(page, "h_ap"), hAp([3, 2, 3, 0, 1]));
    assert.equal(new URL(page.url()).searchParams.get("ranking"), null);
    await page.mouse.up();
    await expectLevels(page, [3, 2, 3, 0, 1]);
    await page.waitForURL(/ranking=32301/);
    await page.locator("[data-do=undo]").click();
    await expectLevels(page, [2, 3, 0, 1, 3]);
    await page.locator("[data-do=redo]").click();
    await expectLevels(page, [3, 2, 3, 0, 1]);
  }));

/** Scrolls an element to the centre, again and again until a swipe no longer moves the page. */
async function centred(element) {
  for (let still = 0, top; still < 10; still += 1) {
    if (element.getBoundingClientRect().top !== top) {
      element.scrollIntoView({ block: "center", behavior: "instant" });
      top = element.getBoundingClientRect().top;
      still = 0;
    }
    await new Promise(requestAnimationFrame);
  }
}

test("a finger drags an item by its handle, and scrolls the page elsewhere", () =>
  open(
    "",
    async (page) => {
      const session = await page.context().newCDPSession(page);
      const touch = (type, x, y) =>
        session.send("Input.dispatchTouchEvent", {
          type,
          touchPoints: type === "touchEnd" ? [] : [{ x, y }],
        });
      const drag = async (selector) => {
        await page.locator(".items").evaluate(centred);
        const from = await page
          .locator(`.item[data-item="4"] ${selector}`)
          .boundingBox();
        const to = await page
          .locator('.item[data-item="2"] .grip')
          .boundingBox();
        await touch("touchStart", from.x + 10, from.y + 10);
        for (const part of [0.25, 0.5, 0.75, 1])
          await touch(
            "touchMove",
            from.x + 10,
            from.y + 10 + (to.y - from.y) * part,
          );
        await touch("touchEnd");
      };
      await drag(".word");
      await expectLevels(page, [2, 3, 0, 1, 3]);
      await drag(".grip");
      await expectLevels(page, [2, 3, 3, 0, 1]);
    },
    { width: 360, touch: true },
  ));

test("the numbers of the sentence are the difference of the scores", () =>
  open("&ranking=2301310203", async (page) => {
    for (const [from, to] of [
      [3, 2],
      [9, 0],
      [0, 6],
      [4, 5],
      [7, 1],
    ]) {
      const before = await scores(page);
      await page.evaluate(
        ([from, to]) =>
          document.querySelector("akin-playground").moveItem(0, from, to),
        [from, to],
      );
      await page.evaluate(
        () => document.querySelector("akin-playground").updateComplete,
      );
      const after = await scores(page);
      const why = page.locator("[data-testid=why]");
      near(
        Number(await why.getAttribute("data-delta")),
        after.h_ap - before.h_ap,
      );
      const text = (await why.locator(".why-numbers").textContent()).replaceAll(
        "−",
        "-",
      );
      const said = Number(
        /(?:= |up to )([+-]?[\d.]+?)(?:\.$| for)/.exec(text)?.[1],
      );
      near(said, after.h_ap - before.h_ap, 5.1e-4);
      near(after.h_ap, hAp(await levels(page)));
      near(after.ap, ap(await levels(page)));
    }
  }));

test("a swap is explained by the exact law", () =>
  open("", async (page) => {
    await page.locator('.item[data-item="3"] [data-by="-1"]').click();
    assert.equal(
      await page.locator(".why-plain").textContent(),
      "One of the same group moved above a stranger.",
    );
    assert.equal(
      await page.locator(".why-numbers").textContent(),
      "At ranks 3 and 4 that adds to H-AP (0.33 − 0 + 0.67 − 0) / (3 · 4 · 3) = +0.028.",
    );
  }));

for (const [preset, expected] of Object.entries({
  "fig8-first": [[0.45, hAp([2, 3, 0, 1, 3])]],
  "fig8-second": [[0.45, hAp([1, 3, 0, 2, 3])]],
  fig8: [
    [0.45, hAp([2, 3, 0, 1, 3])],
    [0.45, hAp([1, 3, 0, 2, 3])],
  ],
})) {
  test(`the example ${preset} has the scores of the paper`, () =>
    open("&ranking=3210", async (page) => {
      await page.locator(`[data-preset="${preset}"]`).click();
      for (const [which, [expectedAp, expectedHAp]] of expected.entries()) {
        const name = which === 0 ? "metric" : "metric2";
        near(await value(page, "ap-3", name), expectedAp);
        near(await value(page, "h_ap", name), expectedHAp);
      }
    }));
}

test("the example of Fig. 1 has AP 0.9 twice, and H-AP 0.94 and 0.68", () =>
  open("", async (page) => {
    await page.locator('[data-preset="fig1"]').click();
    await page.waitForSelector('.items[data-which="1"]');
    const [first, second] = [await levels(page, 0), await levels(page, 1)];
    assert.deepEqual(first.toSorted(), second.toSorted());
    near(ap(first), 0.9, 5e-3);
    near(ap(second), ap(first));
    near(hAp(first, { shared: true }), 0.94, 5e-3);
    near(hAp(second, { shared: true }), 0.68, 5e-3);
    near(await value(page, "h_ap"), hAp(first, { shared: true }));
    near(await value(page, "h_ap", "metric2"), hAp(second, { shared: true }));
    near(await value(page, "ap-3"), ap(first));
  }));

test("orders with the same AP have the best and the worst H-AP", () =>
  open("&ranking=2301310203", async (page) => {
    const start = await scores(page);
    await page.locator("[data-do=worst_same_ap]").click();
    const worst = await scores(page);
    await page.locator("[data-do=best_same_ap]").click();
    const best = await scores(page);
    assert.ok(worst.h_ap < start.h_ap && start.h_ap < best.h_ap);
    near(worst.ap, start.ap);
    near(best.ap, start.ap);
    await page.locator("[data-do=ideal]").click();
    near((await scores(page)).h_ap, 1);
    await page.locator("[data-do=shuffle]").click();
    near((await scores(page)).h_ap, hAp(await levels(page)));
  }));

test("with one level H-AP is AP", () =>
  open("", async (page) => {
    await page.locator(".tree header .quiet").click();
    await page.locator("[aria-label='Remove the level group']").click();
    await page.locator("[aria-label='Remove the level family']").click();
    await expectLevels(page, [0, 1, 0, 0, 1]);
    near(await value(page, "h_ap"), 0.45);
    near(await value(page, "ap-1"), 0.45);
  }));

test("the tree is edited, and undone", () =>
  open("", async (page) => {
    await page.locator(".tree header .quiet").click();
    await page.locator("[aria-label='Add a family to the beetle']").click();
    await expectLevels(page, [2, 3, 0, 1, 3, 1]);
    await page
      .locator("[aria-label='Add a spotted round snail to the ranking']")
      .click();
    await expectLevels(page, [2, 3, 0, 1, 3, 1, 0]);
    await page
      .locator("[aria-label='Make the striped round beetle the query']")
      .click();
    await expectLevels(page, [3, 2, 0, 1, 2, 1, 0]);
    near(await value(page, "h_ap"), hAp([3, 2, 0, 1, 2, 1, 0]));
    await page.locator("text=Add a finer level").click();
    assert.equal((await levels(page)).length, 7);
    await page.waitForURL(/levels=4/);
    const shared = new URL(page.url()).search;
    for (let step = 0; step < 4; step++)
      await page.locator("[data-do=undo]").click();
    await expectLevels(page, [2, 3, 0, 1, 3]);
    assert.ok(shared.length < 300);
  }));

for (const query of [
  "&ranking=1302&alpha=2.5",
  "&ranking=3301021&second=3310021&relevance=hierarchical_ap&count=1",
  "&ranking=201012&levels=2&ties=2-3,5-6&policy=pessimistic",
  "&ranking=310&levels=department,kind,variety&relevance=weighted_ap&weights=1,0.5,2",
  "&ranking=10&levels=1",
]) {
  test(`a link shows the same scores to another reader: ${query}`, () =>
    open(query, async (page) => {
      const read = () =>
        page
          .locator("[data-metric], [data-metric2]")
          .evaluateAll((cells) => cells.map(({ dataset }) => dataset.value));
      const { href } = new URL(page.url());
      await page.locator("[data-by='-1']").last().click();
      await page.waitForURL((url) => url.href !== href);
      const before = await read();
      await page.reload();
      await page.waitForSelector("[data-metric=h_ap]:not([data-value=''])");
      assert.deepEqual(await read(), before);
      assert.ok(page.url().length < 2000);
    }));
}

test("a bad address gives the first example", () =>
  open(
    "&ranking=9x!&alpha=abc&levels=,,&tree=99&ties=zz&query=77&policy=nobody&looks=zz&classes=99",
    async (page) => {
      await expectLevels(page, [2, 3, 0, 1, 3]);
      assert.equal(await page.locator("[name=alpha]").inputValue(), "1");
    },
  ));

test("tied items are scored by the policy, and the sentence gives the difference itself", () =>
  open("&ranking=230130", async (page) => {
    await page.locator("[name=tying]").check();
    await page.locator('.item[data-item="3"] .glue').click();
    const stable = await value(page, "h_ap");
    const tied = (policy) => page.locator("[name=policy]").selectOption(policy);
    await tied("optimistic");
    const best = await value(page, "h_ap");
    await tied("pessimistic");
    const worst = await value(page, "h_ap");
    assert.ok(worst <= stable && stable <= best && worst < best);
    await page.locator('.item[data-item="5"] [data-by="-1"]').click();
    assert.match(
      await page.locator(".why-numbers").textContent(),
      /a change of/,
    );
  }));

test("the item under the focus lights its term, its column and its path", () =>
  open("", async (page) => {
    await page.locator('.item[data-item="3"] .grip').focus();
    assert.equal(
      await page.locator(".term.lit[data-term]").getAttribute("data-term"),
      "3",
    );
    assert.equal(
      await page.locator(".curve .lit").getAttribute("data-rank"),
      "4",
    );
    assert.deepEqual(
      await page
        .locator(".node[data-lit=true] > .node-line .node-name")
        .allTextContents(),
      ["beetle", "long beetle", "spotted long beetle"],
    );
    assert.match(
      await page.locator(".term-detail").innerText(),
      /1 \/ 4 = 0\.25/,
    );
  }));

test("a teacher hides parts by the address", () =>
  open("&hide=controls,tree,curve", async (page) => {
    for (const part of [".controls", ".tree", ".curve"])
      assert.equal(await page.locator(part).count(), 0, part);
    assert.equal(await page.locator(".equation").count(), 2);
  }));

for (const scheme of ["light", "dark"]) {
  for (const width of [360, 1280]) {
    test(`axe finds nothing at ${width} px in ${scheme}`, () =>
      open(
        "&second=13023",
        async (page) => {
          assert.deepEqual(await axeProblems(page), []);
          await page.locator("[name=tying]").check();
          await page.locator(".tree header .quiet").click();
          await page.locator(".grip").first().focus();
          await page.keyboard.press("Enter");
          assert.deepEqual(await axeProblems(page), []);
        },
        { width, scheme },
      ));
  }
}

for (const width of [360, 768, 1280]) {
  test(`no part of the page moves while a reader moves items at ${width} px`, () =>
    open(
      "&ranking=230131020330",
      async (page) => {
        const moved = await page.evaluate(async () => {
          const playground = document.querySelector("akin-playground");
          const parts = [
            ...playground.shadowRoot.querySelectorAll(
              ".scores, .tree, .formulas, .curve, .items, .controls, .term-detail",
            ),
          ];
          const tops = () =>
            parts.map(
              (part) =>
                `${part.className} ${Math.round(part.getBoundingClientRect().top)}`,
            );
          playground.light(0);
          await playground.updateComplete;
          const before = tops();
          const moved = new Set();
          for (let move = 0; move < 40; move++) {
            playground.moveItem(0, (move * 7) % 12, (move * 5 + 3) % 12);
            playground.light(move % 12);
            await playground.updateComplete;
            tops().forEach(
              (top, index) =>
                top !== before[index] && moved.add(`${before[index]} → ${top}`),
            );
          }
          return [...moved];
        });
        assert.deepEqual(moved, []);
      },
      { width },
    ));
}

test("200 items: scores follow a move at once and before the rows, and nothing else moves", () => {
  const ranking = Array.from(
    { length: 200 },
    (_, rank) => (rank * 7 + (rank >> 2)) % 4,
  ).join("");
  return open(`&ranking=${ranking}`, async (page) => {
    const { scores, rows, shifts } = await page.evaluate(async () => {
      const playground = document.querySelector("akin-playground");
      const boxes = () =>
        [
          ...playground.shadowRoot.querySelectorAll(
            ".scores, .tree, .formulas, .curve, .items, .controls",
          ),
        ].map((part) => Math.round(part.getBoundingClientRect().top));
      playground.moveItem(0, 120, 60);
      await playground.updateComplete;
      const before = boxes();
      const headline = playground.shadowRoot.querySelector(
        "[data-headline=h_ap]",
      );
      const order = () =>
        [...playground.shadowRoot.querySelectorAll(".item")]
          .map(({ dataset }) => dataset.item)
          .join();
      // It is called as soon as the scores are drawn.
      const scoresDrawn = () =>
        new Promise((resolve) =>
          new MutationObserver((_, observer) => {
            observer.disconnect();
            resolve([performance.now(), order()]);
          }).observe(headline, { attributes: true }),
        );
      const scores = [];
      const rows = [];
      const shifts = [];
      let { value } = headline.dataset;
      for (let move = 0; move < 60; move++) {
        const [from, to] = [(move * 37) % 200, (move * 53 + 11) % 200];
        const drawn = scoresDrawn();
        const old = order();
        const began = performance.now();
        playground.moveItem(0, from, to);
        await playground.updateComplete;
        rows.push(performance.now() - began);
        // A move between equal items changes no score.
        if (headline.dataset.value !== value) {
          const [at, seen] = await drawn;
          scores.push(at - began);
          if (seen !== old) shifts.push("the rows came before the scores");
        }
        value = headline.dataset.value;
        const after = boxes();
        if (after.join() !== before.join())
          shifts.push([from, to, before, after]);
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
      const median = (times) =>
        times.sort((a, b) => a - b)[times.length >> 1].toFixed(2);
      return { scores: median(scores), rows: median(rows), shifts };
    });
    console.log(
      `200 items: ${scores} ms from a move to its scores, ${rows} ms to its rows (medians of 60)`,
    );
    assert.deepEqual(shifts, []);
  });
});

test("a node is renamed by keyboard alone, and a link keeps its name", () =>
  open("", async (page) => {
    const tree = page.locator("[data-testid=tree]");
    const active = () =>
      page.evaluate(() =>
        document
          .querySelector("akin-playground")
          .shadowRoot.activeElement?.getAttribute("aria-label"),
      );
    const rename = async (name) => {
      await tree
        .getByRole("button", { name: `Rename the ${name}`, exact: true })
        .press("Enter");
      await page.waitForFunction(
        () =>
          document.querySelector("akin-playground").shadowRoot.activeElement
            ?.className === "name-field",
      );
    };
    await tree.getByRole("button", { name: "Edit" }).press("Enter");
    await rename("round beetle");
    await page.keyboard.type("weevil, 1.5 mm");
    await page.keyboard.press("Enter");
    await tree
      .getByRole("button", { name: "Rename the weevil, 1.5 mm" })
      .waitFor();
    assert.equal(await active(), "Rename the weevil, 1.5 mm");
    assert.match(
      await page.locator("[data-testid=spoken]").textContent(),
      /The round beetle is now called weevil, 1\.5 mm\./,
    );

    await rename("striped round beetle");
    await page.keyboard.type("gone");
    await page.keyboard.press("Escape");
    await tree.getByText("striped round beetle", { exact: true }).waitFor();

    // The names stay with their nodes as the tree changes.
    await tree.getByRole("button", { name: "Remove the snail" }).click();
    await tree.getByRole("button", { name: "Add a finer level" }).click();
    await page.waitForURL((url) => url.searchParams.get("levels") === "4");
    await page.reload();
    await page.waitForSelector("[data-metric=h_ap]:not([data-value=''])");
    assert.equal(await tree.getByText("weevil, 1.5 mm").count(), 1);
    assert.deepEqual(await axeProblems(page), []);

    await tree.getByRole("button", { name: "Edit" }).click();
    await rename("weevil, 1.5 mm");
    await page.keyboard.press("Delete");
    await page.keyboard.press("Enter");
    await tree.getByText("round beetle", { exact: true }).waitFor();
  }));
