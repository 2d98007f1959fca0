// The training ground: that networks learn, that their numbers repeat, and what the reader is told.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axeProblems, openViews } from "./views.mjs";

const { visit } = await openViews();

/** The element is ready and at rest. */
const ready = (page) =>
  page.waitForSelector(
    "akin-training [data-state=ready][data-busy=false], akin-training [data-state=failed]",
  );
const open = (query, check, options = {}) =>
  visit({ ...options, query: `?view=training${query}` }, async (page) => {
    await ready(page);
    await check(page);
  });
const score = async (page, run, part, metric) =>
  Number(
    await page
      .locator(
        `td[data-run=${run}][data-part=${part}][data-metric="${metric}"]`,
      )
      .getAttribute("data-value"),
  );
const scores = (page) =>
  page
    .locator("td[data-run]")
    .evaluateAll((cells) => cells.map(({ dataset }) => dataset.value));
const step = async (page) =>
  Number(
    await page.locator("[data-testid=training]").getAttribute("data-step"),
  );
/** Presses “Train”, and “Pause” after some steps. */
async function train(page, steps) {
  await page.locator("[data-testid=run]").click();
  await page.waitForFunction(
    (steps) =>
      Number(
        document
          .querySelector("akin-training")
          .shadowRoot.querySelector("[data-testid=training]").dataset.step,
      ) >= steps,
    steps,
  );
  await page.locator("[data-testid=run]").click();
  await ready(page);
}

test("fifty steps raise H-AP, and a reset repeats the same numbers", () =>
  open("", async (page) => {
    const start = await scores(page);
    const before = await score(page, "B", "training", "h_ap");
    await page.locator("[data-control=speed]").selectOption("fast");
    await train(page, 50);
    const taken = await step(page);
    const after = await score(page, "B", "training", "h_ap");
    assert.ok(after > before + 0.03, `${before} → ${after}`);
    await page.waitForURL(new RegExp(`steps=${taken}\\b`));

    const fiveSteps = async () => {
      await page.locator("[data-testid=reset]").click();
      await ready(page);
      assert.equal(await step(page), 0);
      assert.deepEqual(await scores(page), start);
      for (let press = 0; press < 5; press++) {
        await page.locator("[data-testid=step]").click();
        await ready(page);
      }
      return scores(page);
    };
    const first = await fiveSteps();
    assert.notDeepEqual(first, start);
    assert.deepEqual(await fiveSteps(), first);
  }));

test("two losses start from the same points, and a link trains as far as its sender did", () =>
  open("&a=norm_softmax&b=happier", async (page) => {
    const points = (run) =>
      page
        .locator(`[data-picture=${run}] .marks`)
        .evaluateAll((paths) => paths.map((path) => path.getAttribute("d")));
    assert.deepEqual(await points("A"), await points("B"));
    for (const metric of ["h_ap", "ap-1", "ap-2", "ap-3"]) {
      assert.equal(
        await score(page, "A", "held_out", metric),
        await score(page, "B", "held_out", metric),
      );
    }
    for (let press = 1; press <= 3; press++) {
      await page.locator("[data-testid=step]").click();
      await ready(page);
    }
    assert.equal(await step(page), 3);
    assert.notDeepEqual(await points("A"), await points("B"));
    const marks = await points("B");
    await page.waitForURL(/steps=3\b/);
    await page.reload();
    await ready(page);
    assert.equal(await step(page), 3);
    assert.deepEqual(await points("B"), marks);
  }));

test("every example opens with its own losses and batches", () =>
  open("", async (page) => {
    for (const [example, space, losses, batches] of [
      ["lambda", "sphere", ["happier", "happier"], ["32", "32"]],
      ["batch", "circle", ["smooth_ap", "smooth_ap"], ["8", "64"]],
      [
        "hier",
        "disk",
        ["hyperbolic_cross_entropy", "hyperbolic_cross_entropy"],
        ["64", "64"],
      ],
      ["species", "circle", ["norm_softmax", "happier"], ["64", "64"]],
    ]) {
      await page.locator(`[data-example=${example}]`).click();
      await page.waitForSelector(
        `[data-example=${example}][aria-pressed=true]`,
      );
      await ready(page);
      assert.ok(
        await page.locator(`[data-control=space-${space}]`).isChecked(),
      );
      for (const [index, run] of ["A", "B"].entries()) {
        const chosen = (control) =>
          page.locator(`[data-control=${control}-${run}]`).inputValue();
        assert.equal(await chosen("loss"), losses[index]);
        assert.equal(await chosen("batch"), batches[index]);
      }
      if (example === "lambda") {
        assert.equal(
          await page.locator("[data-setting=A-lambda]").inputValue(),
          "0",
        );
        assert.equal(
          await page.locator("[data-setting=B-lambda]").inputValue(),
          "0.5",
        );
      }
      if (example === "hier") {
        await page.locator("[data-testid=step]").click();
        await ready(page);
        assert.match(
          await page.locator("[data-testid=about-B]").innerText(),
          /common ancestors from the centre: order \d/,
        );
        assert.ok((await page.locator("[data-picture=B] .branch").count()) > 3);
      }
    }
  }));

test("settings out of range are refused with a hint, and valid ones stand in the address", () =>
  open("", async (page) => {
    const lambda = page.locator("[data-setting=B-lambda]");
    await lambda.fill("7");
    await lambda.press("Enter");
    const notice = page.locator("[data-testid=notice]");
    await notice.waitFor();
    assert.match(await notice.innerText(), /lambda/);
    await lambda.fill("0.3");
    await lambda.press("Enter");
    await notice.waitFor({ state: "detached" });
    await ready(page);
    await page.waitForURL(
      (url) => url.searchParams.get("b") === "happier;lambda=0.3",
    );
  }));

test("the sphere turns by the arrow keys, and a family can be chosen", () =>
  open("&space=sphere&a=happier&b=", async (page) => {
    const marks = page.locator("[data-picture=A] .marks").first();
    const before = await marks.getAttribute("d");
    await page.locator(".frame").focus();
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await marks.getAttribute("d"), before);
    await page.locator("[data-control=family]").selectOption("3");
    assert.equal(await page.locator(".family[data-aside='0']").count(), 1);
  }));

test("a killed worker is told, and training starts again", () =>
  open("", async (page) => {
    await page.locator("[data-testid=step]").click();
    await ready(page);
    const numbers = await scores(page);
    const worker = page
      .workers()
      .find((worker) => worker.url().endsWith("training-worker.js"));
    await worker.evaluate(() => self.close());
    const notice = page.locator("[data-testid=notice]");
    await notice.waitFor();
    assert.equal(await notice.getAttribute("data-code"), "worker");
    await notice.getByRole("button", { name: "Start again" }).click();
    await notice.waitFor({ state: "detached" });
    await ready(page);
    assert.equal(await step(page), 1);
    assert.deepEqual(await scores(page), numbers);
  }));

test("with reduced motion a press takes fifty steps and draws once", () =>
  open("", async (page) => {
    await page.emulateMedia({ reducedMotion: "reduce" });
    await page.reload();
    await ready(page);
    await page.getByRole("button", { name: "Take 50 steps" }).click();
    await ready(page);
    assert.equal(await step(page), 50);
  }));

for (const scheme of ["light", "dark"]) {
  test(`axe finds no problem on the training ground, ${scheme}`, () =>
    open(
      "&space=disk&a=hyperbolic_cross_entropy%2Bhier&steps=10",
      async (page) => assert.deepEqual(await axeProblems(page), []),
      { scheme },
    ));
}

test("the training ground fits a narrow window", () =>
  open("", async () => {}, { width: 360 }));

test("pointing at a creature puts kinship rings around the families of its order", () =>
  open("", async (page) => {
    const picture = page.locator("[data-picture=A]");
    await picture.scrollIntoViewIfNeeded();
    assert.equal(await picture.locator(".ring").count(), 0);
    const mark = await picture.locator(".marks").first().boundingBox();
    // The marks of one order are one path, whose box has a mark at its right edge.
    for (let y = 0; y < mark.height; y += 4) {
      await page.mouse.move(mark.x + mark.width - 4, mark.y + y);
      if (await page.locator(".callout").count()) break;
    }
    const shared = await picture
      .locator(".ring")
      .evaluateAll((rings) => rings.map(({ dataset }) => dataset.shared));
    assert.ok(shared.includes("2") && shared.includes("1"), String(shared));
  }));
