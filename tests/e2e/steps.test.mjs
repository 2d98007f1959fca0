// Steps and gradients: what the curves and the pushes are, how items are moved, and what the address holds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axeProblems, openViews } from "./views.mjs";

const { visit } = await openViews();

const open = (query, check, options = {}) =>
  visit({ ...options, query: `?view=steps${query}` }, async (page) => {
    await page.waitForSelector("akin-steps .item");
    await check(page);
  });

const attribute = async (locator, name) =>
  Number(await locator.getAttribute(name));
const near = (a, b, tolerance = 1e-9) =>
  assert.ok(Math.abs(a - b) < tolerance, `${a} is not ${b}`);

/** What the page shows of a loss: its value, that of 1 − AP or 1 − H-AP, and the push of each item. */
async function lossOf(page, name) {
  const panel = page.locator(`.panel[data-loss=${name}]`);
  const push = await panel
    .locator(".push")
    .evaluateAll((rows) => rows.map(({ dataset }) => Number(dataset.push)));
  return {
    value: await attribute(panel, "data-value"),
    exact: await attribute(panel, "data-exact"),
    push,
  };
}

const scores = (page) =>
  page
    .locator(".item")
    .evaluateAll((dots) => dots.map(({ dataset }) => Number(dataset.score)));
const metric = (page, name) =>
  attribute(page.locator(`[data-metric="${name}"]`), "data-value");
const item = (page, number) => page.locator(`.item[data-item="${number - 1}"]`);

/** Smooth-AP, from its equation. */
function smoothAp(scores, levels, temperature = 0.01) {
  const step = (t) => 1 / (1 + Math.exp(-t / temperature));
  const positives = scores.flatMap((_, k) => (levels[k] === 2 ? [k] : []));
  const rank = (k, items) =>
    items.reduce(
      (sum, j) => (j === k ? sum : sum + step(scores[j] - scores[k])),
      1,
    );
  const quotient = (k) => rank(k, positives) / rank(k, [...scores.keys()]);
  return (
    1 - positives.reduce((sum, k) => sum + quotient(k), 0) / positives.length
  );
}

test("Smooth-AP and its pushes are those of its equation", () =>
  open("", async (page) => {
    const [at, levels] = [await scores(page), [1, 2, 0, 2, 1, 0, 2]];
    const { value, push } = await lossOf(page, "smooth_ap");
    near(value, smoothAp(at, levels));
    for (const [k, own] of at.entries()) {
      const [up, down] = [at.with(k, own + 1e-7), at.with(k, own - 1e-7)].map(
        (moved) => smoothAp(moved, levels),
      );
      near(push[k], -(up - down) / 2e-7, 1e-5);
    }
  }));

test("contradictory gradients: Smooth-AP pushes one relative up and the other down, SupAP both up", () =>
  open("&preset=contradiction", async (page) => {
    const smooth = await lossOf(page, "smooth_ap");
    assert.ok(smooth.push[1] < -0.5 && smooth.push[2] > 0.5);
    near(smooth.push[1], -smooth.push[2], 1e-3);
    const { push } = await lossOf(page, "sup_ap");
    assert.ok(push[0] < -1 && push[1] > 0.4 && push[2] > 0.4);
    // Without other kin there is nothing that only H-AP sees.
    assert.deepEqual((await lossOf(page, "hap_surrogate_text")).push, push);
  }));

test("vanishing gradients: Smooth-AP moves nothing although the order is wrong, SupAP does", () =>
  open("&preset=vanishing", async (page) => {
    assert.ok((await metric(page, "ap")) < 1);
    const smooth = await lossOf(page, "smooth_ap");
    assert.ok(smooth.push.every((push) => Math.abs(push) < 1e-3));
    const { push } = await lossOf(page, "sup_ap");
    assert.ok(push[0] < -0.4 && push[1] > 0.1 && push[2] > 0.1);
    await page.locator("[data-do=step]").click();
    assert.match(
      await page.locator("[data-testid=progress]").innerText(),
      /Smooth-AP moves nothing here/,
    );
    assert.deepEqual(await scores(page), [0.85, 0.7, 0.55]);
  }));

test("no upper bound: Smooth-AP is less than 1 − AP, SupAP is not", () =>
  open("&preset=no-bound", async (page) => {
    const smooth = await lossOf(page, "smooth_ap");
    assert.ok(smooth.value < smooth.exact - 0.03);
    assert.match(
      await page.locator(".panel[data-loss=smooth_ap]").textContent(),
      /no upper bound/,
    );
    const bound = await lossOf(page, "sup_ap");
    assert.ok(bound.value > bound.exact);
    assert.doesNotMatch(
      await page.locator(".panel[data-loss=sup_ap]").textContent(),
      /no upper bound/,
    );
    near(bound.exact, 1 - (await metric(page, "ap")));
  }));

test("a negative H-rank: the surrogate draws the stranger up, with a constant H-rank down", () =>
  open("&preset=negative", async (page) => {
    assert.ok((await lossOf(page, "hap_surrogate_text")).push[1] > 4);
    assert.ok((await lossOf(page, "hap_surrogate")).push[1] < -1);
    await item(page, 1).focus();
    assert.ok(
      (await attribute(page.locator("[data-testid=h-rank]"), "data-value")) <
        -1.7,
    );
  }));

test("what AP does not see: with AP 1 only the surrogate of H-AP still moves relatives", () =>
  open("&preset=relatives", async (page) => {
    assert.equal(await metric(page, "ap"), 1);
    assert.ok((await metric(page, "h-ap")) < 0.95);
    assert.ok(
      (await lossOf(page, "sup_ap")).push.every(
        (push) => Math.abs(push) < 0.02,
      ),
    );
    const { push } = await lossOf(page, "hap_surrogate_text");
    assert.ok(push[5] > 0.5 && push[2] < -0.5);
  }));

test("a reader moves an item by keyboard, and rank, AP and pushes follow", () =>
  open("&preset=contradiction", async (page) => {
    near(await metric(page, "ap"), 7 / 12);
    const before = await lossOf(page, "sup_ap");
    await item(page, 2).focus();
    await page.keyboard.press("ArrowRight");
    near((await scores(page))[1], 0.62);
    await page.keyboard.press("Shift+ArrowLeft");
    near((await scores(page))[1], 0.619);
    for (let pressed = 0; pressed < 3; pressed++)
      await page.keyboard.press("PageUp");
    near(await metric(page, "ap"), 5 / 6);
    const after = await lossOf(page, "sup_ap");
    assert.ok(after.value < before.value);
    assert.notDeepEqual(after.push, before.push);
    const text = await item(page, 2).getAttribute("aria-valuetext");
    assert.match(
      text,
      /^score 0\.769, same species, rank 1\. Pushed by Smooth-AP \w+ by \d\.\d\d, by SupAP /,
    );
    // The key of a level makes it a stranger.
    await page.keyboard.press("0");
    near(await metric(page, "ap"), 1 / 3);
  }));

test("a reader drags an item along the line, and hears where it is", () =>
  open("&preset=contradiction", async (page) => {
    await item(page, 1).scrollIntoViewIfNeeded();
    const { x, y, width, height } = await item(page, 1).boundingBox();
    await page.mouse.move(x + width / 2, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width / 2 - 450, y + height / 2, { steps: 5 });
    await page.mouse.up();
    assert.ok((await scores(page))[0] < 0.6);
    near(await metric(page, "ap"), 1);
    await page.waitForFunction(() =>
      /^Item 1: score 0\.5\d\d, stranger, rank 3/.test(
        document
          .querySelector("akin-steps")
          .shadowRoot.querySelector("[role=status].visually-hidden")
          .textContent,
      ),
    );
  }));

test("training steps that follow SupAP put the list in order, and reset brings it back", () =>
  open("&preset=vanishing", async (page) => {
    await page.emulateMedia({ reducedMotion: "reduce" });
    await page.locator("[data-setting=follow]").selectOption("sup_ap");
    await page.locator("[data-do=run]").click();
    near(await metric(page, "ap"), 1);
    assert.ok(await page.locator("[data-testid=trace]").isVisible());
    assert.match(
      await page.locator("[data-testid=progress]").innerText(),
      /After \d+ steps: AP 0\.583 → 1\.000/,
    );
    await page.locator("[data-do=reset]").click();
    assert.deepEqual(await scores(page), [0.85, 0.7, 0.55]);
    assert.equal(await page.locator("[data-testid=trace]").count(), 0);
  }));

test("the sliders change the steps and the losses, and can be taken back", () =>
  open("&preset=vanishing", async (page) => {
    const slope = page.locator(
      "path[data-step=sigmoid][data-part=derivatives]",
    );
    const [curve, before] = [
      await slope.getAttribute("d"),
      await lossOf(page, "smooth_ap"),
    ];
    await page.locator("[data-setting=tau]").fill("0.1");
    assert.notEqual(await slope.getAttribute("d"), curve);
    const { value, push } = await lossOf(page, "smooth_ap");
    near(value, smoothAp([0.85, 0.7, 0.55], [0, 2, 2], 0.1));
    assert.ok(push[0] < -0.1, "a wider sigmoid reaches the stranger");
    await page.getByRole("button", { name: "The papers’ settings" }).click();
    assert.deepEqual(await lossOf(page, "smooth_ap"), before);
  }));

test("the address holds what a reader has set, and a bad one gives the default", () =>
  open("&preset=contradiction", async (page) => {
    await item(page, 3).focus();
    await page.keyboard.press("PageUp");
    await page.locator("[data-setting=rho]").fill("20");
    await page.locator("[data-choice=hap_surrogate]").check();
    await page.waitForFunction(() => location.search.includes("losses="));
    const search = await page.evaluate(() => location.search);
    assert.ok(search.length < 2000);
    const shown = [
      await scores(page),
      await lossOf(page, "sup_ap"),
      await lossOf(page, "hap_surrogate"),
    ];
    await page.goto(new URL(search, page.url()).href);
    await page.reload();
    await page.waitForSelector("akin-steps .item");
    assert.deepEqual(
      [
        await scores(page),
        await lossOf(page, "sup_ap"),
        await lossOf(page, "hap_surrogate"),
      ],
      shown,
    );
    assert.equal(await page.locator("[data-setting=rho]").inputValue(), "20");

    await page.goto(
      new URL(
        "?view=steps&preset=none&scores=2,x&levels=9&tau=-1&losses=no&follow=x",
        page.url(),
      ).href,
    );
    await page.waitForSelector("akin-steps .item");
    assert.deepEqual(
      await scores(page),
      [0.8, 0.77, 0.74, 0.72, 0.69, 0.66, 0.62],
    );
    assert.equal(await page.locator("[data-setting=tau]").inputValue(), "0.01");
  }));

test("items can be added and removed, up to a limit", () =>
  open("&preset=vanishing", async (page) => {
    await page.locator("[data-do=remove]").click();
    assert.equal(await page.locator(".item").count(), 2);
    assert.ok(await page.locator("[data-do=remove]").isDisabled());
    for (let added = 0; added < 10; added++)
      await page.locator("[data-do=add]").click();
    assert.ok(await page.locator("[data-do=add]").isDisabled());
    assert.equal(
      await page.locator(".panel[data-loss=sup_ap] .push").count(),
      12,
    );
  }));

test("a teacher hides parts", () =>
  open("&hide=curves,training,presets", async (page) => {
    for (const gone of [
      "[data-testid=step-chart]",
      "[data-do=run]",
      "[data-preset]",
    ])
      assert.equal(await page.locator(gone).count(), 0);
    assert.ok(await page.locator("[data-testid=score-chart]").isVisible());
  }));

test("both charts can be saved", () =>
  open("", async (page) => {
    for (const [index, name] of ["steps.svg", "gradients.svg"].entries()) {
      const download = page.waitForEvent("download");
      await page.getByRole("button", { name: "SVG" }).nth(index).click();
      assert.equal((await download).suggestedFilename(), name);
    }
  }));

for (const [scheme, width] of [
  ["light", 1280],
  ["dark", 360],
]) {
  test(`every example passes axe, ${scheme}, ${width} px`, async () => {
    for (const preset of ["mixed", "negative"]) {
      await open(
        `&preset=${preset}&losses=smooth_ap,sup_ap,roadmap,hap_surrogate_text,hap_surrogate`,
        async (page) => {
          await page.locator("[data-do=step]").click();
          for (const closed of [".numbers", ".equations"])
            await page.locator(`${closed} summary`).click();
          assert.deepEqual(await axeProblems(page), []);
        },
        { scheme, width },
      );
    }
  });
}

test("equal scores are named, with how they count", () =>
  open("&preset=none&scores=0.8,0.7,0.7&levels=021", async (page) => {
    const note = page.locator("[data-testid=tied]");
    assert.match(await note.innerText(), /Items 2 and 3 .* worst order/);
    await page.locator(".item[data-item='1']").focus();
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(
      (note) => note.textContent.trim() === "",
      await note.elementHandle(),
    );
  }));

/** The largest loss of AP of equal batches, ROADMAP's equations 8 and 9. */
function gapBounds({ count, good, bad, goodStrangers, badStrangers }) {
  const [own, strangers] = [good + bad, goodStrangers + badStrangers];
  const precision = (above, before) => above / (above + before);
  let [any, calibrated] = [0, 0];
  for (let batch = 0; batch < count; batch++) {
    for (let j = 1; j <= own; j++)
      any += precision(j + batch * own, batch * strangers);
    for (let j = 1; j <= good; j++)
      calibrated += precision(j + batch * good, batch * badStrangers);
    for (let j = 1; j <= bad; j++)
      calibrated += precision(j + good + batch * own, batch * strangers);
  }
  return [1 - any / (count * own), 1 - calibrated / (count * own)];
}

test("AP of the whole set is bounded by what the batches hold, and calibration raises it to that of the batches", () =>
  open("", async (page) => {
    const bounds = async () => [
      await attribute(page.locator("[data-bound=any]"), "data-value"),
      await attribute(page.locator("[data-bound=calibrated]"), "data-value"),
    ];
    const set = (name, value) =>
      page.locator(`[data-batches=${name}]`).fill(String(value));
    const expect = async (batches) => {
      const [any, calibrated] = await bounds();
      near(any, gapBounds(batches)[0]);
      near(calibrated, gapBounds(batches)[1]);
    };
    const start = {
      count: 4,
      good: 3,
      bad: 0,
      goodStrangers: 3,
      badStrangers: 1,
    };
    /** AP of the ranking that is drawn. */
    const drawnAp = async (name) => {
      const items = await page
        .locator(`[data-ranking=${name}] i`)
        .evaluateAll((items) => items.map(({ className }) => className));
      const ranks = items.flatMap((item, at) =>
        item === "own" ? [at + 1] : [],
      );
      const sum = ranks.reduce((sum, rank, at) => sum + (at + 1) / rank, 0);
      return sum / ranks.length;
    };
    await page.waitForSelector("[data-ranking=any]");
    await expect(start);
    for (const [at, name] of ["any", "calibrated"].entries())
      near(await drawnAp(name), 1 - (await bounds())[at]);

    await set("badPositives", 2);
    await set("count", 6);
    await expect({ ...start, count: 6, bad: 2 });
    assert.equal(await page.locator("[data-ranking=any] .batch").count(), 6);
    assert.equal(await page.locator("[data-ranking=calibrated]").count(), 0);
    const label = await page
      .locator("[data-ranking=any]")
      .getAttribute("aria-label");
    assert.match(label, /6 batches.*5 items of the species before 4 strangers/);
    near(await drawnAp("any"), 1 - (await bounds())[0]);

    // A link has the same batches.
    await page.waitForURL(/[?&]batches=63231(&|$)/);
    await page.reload();
    await page.waitForSelector("[data-ranking=any]");
    await expect({ ...start, count: 6, bad: 2 });

    await set("badPositives", 0);
    await set("badNegatives", 0);
    await set("goodNegatives", 4);
    const [any, calibrated] = await bounds();
    assert.ok(any > 0.1 && calibrated === 0, `${any}, ${calibrated}`);

    // Without an item of the species there is no AP.
    await set("goodPositives", 0);
    assert.equal(
      await page.locator("[data-bound=any]").getAttribute("data-value"),
      "",
    );
    assert.match(await page.innerText("[data-bound=any]"), /there is no AP/);
    assert.deepEqual(await axeProblems(page), []);
  }));

test("where equation 9 gives less than equation 8, the note says that the larger value counts", () =>
  open("&batches=81606", async (page) => {
    const loss = async (name) =>
      Number(
        await attribute(page.locator(`[data-bound=${name}]`), "data-value"),
      );
    assert.ok((await loss("calibrated")) > (await loss("any")));
    assert.match(
      await page.innerText("[data-testid=both]"),
      /smaller value.*larger one counts/s,
    );
  }));

test("batches of an address that are out of range are those at the start", () =>
  open("&batches=90000", async (page) => {
    const [any] = gapBounds({
      count: 4,
      good: 3,
      bad: 0,
      goodStrangers: 3,
      badStrangers: 1,
    });
    near(await attribute(page.locator("[data-bound=any]"), "data-value"), any);
  }));
