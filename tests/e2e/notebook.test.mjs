// The widgets of the package for Python, in JupyterLab and marimo: what they show, and what Python knows of it.
//
// Environment, beside that of site.mjs: AKIN_NOTEBOOKS is the folder of programs of a virtual environment that has
// JupyterLab, marimo, anywidget, and akin with its page (scripts/notebook.mjs); without it these tests are skipped.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { bundle, fixture, launch } from "./site.mjs";

const programs = process.env.AKIN_NOTEBOOKS;
const skip = programs ? false : "AKIN_NOTEBOOKS is not set";
const half = JSON.parse(readFileSync(fixture("half/bundle.json"), "utf8"));
const folder = mkdtempSync(join(tmpdir(), "akin-notebook-"));
const browser = programs ? await launch("cpu") : null;
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Cells that make a report, a playground and two maps. */
const CELLS = [
  `import akin
import numpy as np
rng = np.random.default_rng(0)
species = np.arange(200) % 20
embeddings = rng.normal(size=(20, 16))[species] + rng.normal(size=(200, 16))
labels = {"family": [f"family {s // 4}" for s in species], "species": [f"species {s}" for s in species]}
measured = akin.evaluate(embeddings, labels, metrics=["h_ap", "ap", "recall@1"], progress=False)`,
  `report = akin.show(measured, names=[f"{row}.jpg" for row in range(200)])`,
  `playground = akin.playground([2, 3, 0, 1, 3], hide=["curve"])`,
  `map1 = akin.map(${JSON.stringify(fixture("bundle"))}, colour=2)`,
  `map2 = akin.map(${JSON.stringify(fixture("half"))})`,
];
const WIDGETS = ["report", "playground", "map1", "map2"];
/** What Python knows, as JSON. */
const KNOWN = `import json
known = [report.query, playground.state, playground.scores["h_ap"], map1.query, len(map1.items)]
print("known:" + json.dumps(known))`;

/** Starts a program that serves notebooks, and stops it after the test. Resolves to its address. */
function serve(t, program, args) {
  const server = spawn(join(programs, program), args, {
    cwd: folder,
    detached: true,
    env: {
      ...process.env,
      HOME: folder,
      PATH: `${programs}:${process.env.PATH}`,
    },
  });
  // Its kernels, too.
  t.after(() => process.kill(-server.pid));
  let said = "";
  return new Promise((fulfil, reject) => {
    server.once("exit", (code) =>
      reject(new Error(`${program} ended with ${code}: ${said}`)),
    );
    for (const stream of [server.stdout, server.stderr])
      stream.on("data", (text) => {
        said += text;
        const [address] =
          /http:\/\/(127\.0\.0\.1|localhost):\d+/.exec(said) ?? [];
        if (address) fulfil(address);
      });
  });
}

/** Opens a page that may request only its own server, and must throw nothing. */
async function visit(address, path, check) {
  const context = await browser.newContext({
    viewport: { width: 1400, height: 1000 },
  });
  const problems = [];
  context.on("request", (request) => {
    const url = request.url();
    const { hostname } = new URL(url);
    if (!/^(127\.0\.0\.1|localhost|)$/.test(hostname))
      problems.push(`a request to another host: ${url}`);
  });
  context.on("weberror", (error) => problems.push(error.error().message));
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    await page.goto(address + path);
    await check(page);
  } finally {
    await context.close();
  }
  assert.deepEqual(problems, []);
}

const report = (page, selector) => page.locator(`akin-report ${selector}`);
const playground = (page, selector) =>
  page.locator(`akin-playground ${selector}`);
const firstMap = (page, selector) =>
  page.locator("akin-map").first().locator(selector);

/** Waits for all widgets, and uses each. Returns what Python must know then. */
async function useWidgets(page) {
  const measured = await report(page, "[data-metric=h_ap]").getAttribute(
    "data-value",
  );
  assert.ok(measured > 0.3 && measured < 1, measured);
  await playground(page, "[data-metric=h_ap]:not([data-value=''])").waitFor({
    state: "attached",
  });
  for (const [index, { gallery }] of [bundle, half].entries()) {
    const map = page.locator("akin-map").nth(index);
    await map.scrollIntoViewIfNeeded();
    await map
      .locator(`[data-testid=map][data-points="${gallery.count}"]`)
      .waitFor();
  }

  // The queries of the worst class, and the worst of them.
  await report(page, "[data-metric=ap][data-level='2']").click();
  const worst = report(page, "[data-class]").first();
  const species = (await worst.innerText()).trim();
  await worst.click();
  const queries = await report(
    page,
    "tr:has([data-query]) .path",
  ).allInnerTexts();
  assert.equal(queries.length, 10);
  assert.ok(
    queries.every((path) => path.endsWith(` ${species}`)),
    queries.join(),
  );
  const query = report(page, "[data-query]").first();
  const row = Number(await query.getAttribute("data-query"));
  assert.equal((await query.innerText()).trim(), `${row}.jpg`);
  assert.equal(row % 20, Number(species.split(" ")[1]));
  await query.click();

  await playground(page, "[data-place='1'] [data-by='-1']").click();
  await playground(page, "[data-place='0'][data-shared='3']").waitFor();
  const hAp = Number(
    await playground(page, "[data-metric=h_ap]").getAttribute("data-value"),
  );

  await firstMap(page, "[data-testid=map]").press("ArrowRight");
  await firstMap(page, "[data-testid=map]").press("Enter");
  const nearest = firstMap(page, "[data-testid=nearest] li[data-item]");
  await nearest.first().waitFor();
  const item = firstMap(page, "[role=treeitem][data-level='1']").first();
  const items = Number(await item.getAttribute("data-items"));
  await item.click();
  return { row, hAp, items };
}

/** What Python printed: its report's query, its playground's state and H-AP, its map's query and items. */
async function known(text, { row, hAp, items }) {
  const [query, state, score, item, chosen] = JSON.parse(
    text.slice(text.indexOf("known:") + 6).split("\n")[0],
  );
  assert.equal(query, row);
  assert.equal(state, "ranking=32013");
  assert.ok(Math.abs(score - hAp) < 1e-12, `${score} is not ${hAp}`);
  assert.ok(item >= 0 && item < bundle.gallery.count);
  assert.equal(chosen, items);
}

test(
  "JupyterLab shows the widgets, and Python knows what a reader chooses",
  { skip },
  async (t) => {
    const cell = (source, id) => ({
      cell_type: "code",
      execution_count: null,
      id,
      metadata: {},
      outputs: [],
      source,
    });
    const sources = [
      ...CELLS,
      ...WIDGETS,
      KNOWN,
      `playground.state = "ranking=3210"`,
    ];
    writeFileSync(
      join(folder, "widgets.ipynb"),
      JSON.stringify({
        cells: sources.map((source, index) => cell(source, `cell-${index}`)),
        metadata: { kernelspec: { name: "python3", display_name: "Python 3" } },
        nbformat: 4,
        nbformat_minor: 5,
      }),
    );
    const settings = join(
      folder,
      ".jupyter/lab/user-settings/@jupyterlab/apputils-extension",
    );
    mkdirSync(settings, { recursive: true });
    writeFileSync(
      join(settings, "notification.jupyterlab-settings"),
      JSON.stringify({ fetchNews: "false", checkForUpdates: false }),
    );
    const address = await serve(t, "jupyter", [
      "lab",
      "--no-browser",
      "--allow-root",
      "--ip=127.0.0.1",
      "--port=0",
      "--IdentityProvider.token=",
      `--ServerApp.root_dir=${folder}`,
    ]);
    await visit(address, "/lab/tree/widgets.ipynb", async (page) => {
      await page.locator(".jp-Notebook .jp-Cell").first().click();
      await page
        .locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        .waitFor();
      const runOne = async (index) => {
        await page.locator(".jp-Notebook .jp-Cell").nth(index).click();
        await page.keyboard.press("Shift+Enter");
      };
      for (let index = 0; index < CELLS.length + WIDGETS.length; index++)
        await runOne(index);
      const chosen = await useWidgets(page);
      const at = CELLS.length + WIDGETS.length;
      await runOne(at);
      const printed = page.locator(".jp-OutputArea-output", {
        hasText: "known:",
      });
      await known(await printed.innerText(), chosen);

      // Another list, from Python.
      await runOne(at + 1);
      await playground(page, "[data-place='3'][data-shared='0']").waitFor();

      const scheme = () =>
        page
          .locator("akin-playground")
          .evaluate((element) => getComputedStyle(element).colorScheme);
      assert.equal(await scheme(), "light");
      await page.getByRole("menuitem", { name: "Settings" }).click();
      await page.getByText("Theme", { exact: true }).hover();
      await page.getByText("JupyterLab Dark", { exact: true }).click();
      await page.waitForFunction(
        () =>
          getComputedStyle(document.querySelector("akin-playground"))
            .colorScheme === "dark",
      );
    });
  },
);

test(
  "marimo shows the widgets, and Python knows what a reader chooses",
  { skip },
  async (t) => {
    const widgets = WIDGETS.map(
      (name) => `${name} = mo.ui.anywidget(${name}_)`,
    );
    const cells = [
      "import marimo as mo",
      ...CELLS.map((source) =>
        WIDGETS.reduce(
          (text, name) => text.replace(`${name} = akin.`, `${name}_ = akin.`),
          source,
        ),
      ),
      ...widgets.map((source, index) => `${source}\n${WIDGETS[index]}`),
      `import json
known = [report.query, playground.state, playground.scores.get("h_ap"), map1.query, len(map1.items)]
mo.md("known:" + json.dumps(known))`,
    ];
    const indented = (source) => source.replaceAll(/^/gm, "    ");
    const code = cells.map(
      (source) => `@app.cell\ndef _():\n${indented(source)}\n`,
    );
    writeFileSync(
      join(folder, "widgets.py"),
      `import marimo\n\napp = marimo.App()\n\n${code.join("\n")}\nif __name__ == "__main__":\n    app.run()\n`,
    );
    const address = await serve(t, "marimo", [
      "--yes",
      "run",
      "widgets.py",
      "--headless",
      "--no-token",
      "--host=127.0.0.1",
      "--no-check",
    ]);
    await visit(address, "", async (page) => {
      const chosen = await useWidgets(page);
      const printed = page.locator("text=known:").last();
      const isKnown = async () => {
        try {
          await known(await printed.innerText(), chosen);
          return true;
        } catch {
          return false;
        }
      };
      for (const until = Date.now() + 20_000; !(await isKnown());)
        if (Date.now() > until) return known(await printed.innerText(), chosen);
    });
  },
);
