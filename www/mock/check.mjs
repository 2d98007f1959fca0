// `npm run mock:check`: visits every state of the page with the stand-in engine in headless Chromium
// and audits it with axe. Writes screenshots into the folder given as argument, if any.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { serveMock } from "./serve.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const engine = readFileSync(fileURLToPath(new URL("akin-web.js", import.meta.url)), "utf8");
const shots = process.argv[2];
const { address, stop } = await serveMock(8096);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--headless=new",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
  ],
});

let passed = 0;
let failed = 0;

/** Opens the page, brings it into a state with `act`, checks it with `expect`, and audits it. */
async function state(name, { query = "", width = 1280, scheme = "light", fail = "", act, expect }) {
  const context = await browser.newContext({
    viewport: { width, height: width < 500 ? 780 : 900 },
    colorScheme: scheme,
    bypassCSP: false,
  });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on(
    "console",
    (message) =>
      message.type() === "error" &&
      !/404|status of/.test(message.text()) &&
      problems.push(`console: ${message.text()}`),
  );
  page.on("request", (request) => {
    if (!request.url().startsWith(address) && !/^(blob|data):/.test(request.url()))
      problems.push(`request elsewhere: ${request.url()}`);
  });
  if (fail) {
    await context.route("**/akin-web.js*", (route) =>
      route.fulfill({ contentType: "text/javascript", body: `self.akinMock = "${fail}";\n${engine}` }),
    );
  }
  try {
    await page.goto(address + query);
    await act?.(page);
    await page.waitForTimeout(250);
    await expect?.(page);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (overflow > 0) problems.push(`${overflow} px too wide`);
    if (shots)
      await page.screenshot({ path: join(shots, `${name.replaceAll(/[^a-z0-9]+/gi, "-")}.png`), fullPage: true });
    // The debugger may run the script, which the page's security policy would forbid.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() =>
      globalThis.axe.run(document, {
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      }),
    );
    for (const { id, nodes } of violations)
      problems.push(
        `axe ${id}: ${nodes
          .slice(0, 3)
          .map((node) => `${node.target} ${node.failureSummary?.split("\n")[1]?.trim()}`)
          .join("; ")}`,
      );
  } catch (error) {
    problems.push(String(error).split("\n").slice(0, 3).join(" "));
  }
  if (problems.length === 0) passed++;
  else failed++;
  console.log(
    `${problems.length === 0 ? "ok  " : "FAIL"} ${name}${problems.map((problem) => `\n       ${problem}`).join("")}`,
  );
  await context.close();
}

const must = (condition, message) => {
  if (!condition) throw new Error(message);
};
const ready = (page) => page.waitForSelector("[data-testid=results] li", { timeout: 15000 });
const look = async (page) => {
  await ready(page);
  await page.click("[data-look-item]");
  await page.waitForSelector("akin-look [data-testid=look][data-busy=false]");
};
const upload = async (page, name, buffer) => {
  await ready(page);
  await page.setInputFiles("[data-testid=file]", { name, mimeType: "image/png", buffer });
};
const picture = readFileSync(fileURLToPath(new URL("out/bundle/thumbnails-0.png", import.meta.url)));
/** A picture of one pixel, which stands for one that is unlike everything. */
const dot = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

for (const scheme of ["light", "dark"]) {
  for (const width of [360, 768, 1280]) {
    await state(`ready ${width} ${scheme}`, { width, scheme, act: ready });
    await state(`side by side ${width} ${scheme}`, {
      width,
      scheme,
      query: "?encoder=NormSoftmax&compare=HAPPIER&q=40",
      act: ready,
    });
  }
  await state(`own picture ${scheme}`, {
    scheme,
    act: (page) => upload(page, "beetle.png", picture).then(() => page.waitForSelector("[data-testid=votes]")),
  });
  await state(`unreadable picture 360 ${scheme}`, {
    width: 360,
    scheme,
    act: (page) => upload(page, "holiday.jpg", Buffer.from("no picture")),
    expect: async (page) =>
      must(
        (await page.waitForSelector("[data-testid=notice]")) &&
          (await page.getAttribute("[data-testid=notice]", "data-code")) === "image",
        "no notice",
      ),
  });
  await state(`unlike picture 360 ${scheme}`, {
    width: 360,
    scheme,
    act: (page) => upload(page, "dot.png", dot).then(() => page.waitForSelector("[data-testid=unlike]")),
  });
  for (const width of [360, 1280]) {
    await state(`where it looks ${width} ${scheme}`, { width, scheme, query: "?q=40", act: look });
    await state(`codes ${width} ${scheme}`, { width, scheme, query: "?bundle=bundles/codes/&q=40", act: look });
  }
  await state(`own gallery ${scheme}`, {
    scheme,
    act: async (page) => {
      await ready(page);
      await page.click("[data-testid=own-entry] summary");
      const file = (name, buffer) => ({ name, mimeType: "image/png", buffer });
      const files = [file("a.png", picture), file("b.png", picture), file("broken.png", Buffer.from("no picture"))];
      await page.setInputFiles("[data-testid=own-files]", files);
      await page.waitForSelector("[data-testid=own]");
      await page.click("[data-testid=damaged] summary");
      await ready(page);
    },
  });
  for (const width of [360, 1280]) {
    await state(`large encoder ${width} ${scheme}`, {
      width,
      scheme,
      act: async (page) => {
        await page.context().route("**/bundle/bundle.json", async (route) => {
          const manifest = await (await route.fetch()).json();
          for (const file of manifest.files) if (file.path.endsWith(".bpk")) file.bytes = 47_000_000;
          await route.fulfill({ json: manifest });
        });
        await page.reload();
        await page.waitForSelector("[data-testid=offer]");
      },
      expect: async (page) => {
        const offer = await page.textContent("[data-testid=offer]");
        must(/Load 47\.\d MB/.test(offer), `the offer does not say its size: ${offer}`);
        const weights = () => performance.getEntriesByType("resource").some(({ name }) => name.endsWith(".bpk"));
        must(!(await page.evaluate(weights)), "the weights were loaded without being asked for");
        await page.click("[data-testid=offer] button");
        await ready(page);
        must((await page.$("[data-testid=offer]")) === null, "the offer stays");
        await page.click("[data-testid=encoders] input:not(:checked)");
        await page.waitForSelector("[data-testid=offer]");
      },
    });
  }
  await state(`no bundle ${scheme}`, {
    scheme,
    query: "?bundle=nowhere",
    act: (page) => page.waitForSelector("[data-state=error]"),
  });
}

await state("bundle elsewhere", {
  query: "?bundle=https://example.org/bundle/",
  act: (page) => page.waitForSelector("[data-state=error]"),
  expect: async (page) =>
    must((await page.getAttribute("[data-testid=notice]", "data-code")) === "origin", "not refused by name"),
});
await state("newer bundle", {
  fail: "bundle",
  act: (page) => page.waitForSelector("[data-state=error]"),
  expect: async (page) =>
    must((await page.getAttribute("[data-testid=notice]", "data-code")) === "bundle", "not refused by name"),
});
for (const fail of ["webgpu", "parity", "panic"]) {
  await state(`fallback after ${fail}`, {
    fail,
    act: ready,
    expect: async (page) => {
      must((await page.getAttribute("[data-testid=backend]", "data-backend")) === "cpu", "not on the CPU");
      await page.click("[data-testid=backend] summary");
      must(/WebGPU was tried first/.test(await page.textContent("[data-testid=backend-reason]")), "no reason given");
    },
  });
}
await state("loading", {
  act: async (page) => {
    await page.context().route("**/*.bpk", () => {});
    await page.reload();
    await page.waitForSelector("[data-phase=gallery][data-state=done]");
    await page.waitForTimeout(400);
  },
});
await state("empty search", {
  act: async (page) => {
    await ready(page);
    await page.fill("input[type=search]", "zzz");
  },
});
await state("model card and menus open", {
  act: async (page) => {
    await ready(page);
    await page.click("[data-testid=model-card] summary");
    await page.click("[data-testid=backend] summary");
  },
});
await state("own picture named", {
  act: async (page) => {
    await upload(page, "beetle.png", picture);
    await page.click(".labels summary");
    for (const level of [1, 2, 3]) await page.selectOption(`select[data-level="${level}"]`, { index: 1 });
    await page.waitForSelector("[data-metric=h_ap]");
  },
});
await state("keyboard only", {
  act: async (page) => {
    await ready(page);
    await page.focus("[data-testid=results] [tabindex='0']");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    const item = await page.evaluate(() => document.activeElement?.dataset.queryItem);
    await page.keyboard.press("Enter");
    await page.waitForSelector(`[data-testid=ranking][data-query="item:${item}"][aria-busy=false]`);
    must(new URL(page.url()).searchParams.get("q") === item, "the address does not name the query");
    must(await page.evaluate(() => document.activeElement?.id === "query-title"), "focus is lost");
  },
});
await state("reload keeps the state", {
  query: "?encoder=NormSoftmax&q=12&k=48",
  act: ready,
  expect: async (page) => {
    const read = () => page.$eval("[data-metric=h_ap]", (cell) => cell.dataset.value);
    const before = await read();
    await page.reload();
    await ready(page);
    must(before === (await read()), "another score after a reload");
    must((await page.$$("[data-testid=results] li")).length === 48, "another number of results");
  },
});
await state("encoders switched", {
  act: async (page) => {
    await ready(page);
    await page.check("[data-testid=compare]");
    await page.waitForFunction(() => document.querySelectorAll("[data-testid=ranking][aria-busy=false]").length === 2);
    must(new URL(page.url()).search === "?encoder=NormSoftmax&compare=HAPPIER", `the address is ${page.url()}`);
    await page.check("[data-testid=encoders] input[value=NormSoftmax]");
    await page.waitForFunction(() => document.querySelectorAll("[data-testid=ranking]").length === 1);
    await page.click("[data-testid=more]");
    await page.waitForFunction(() => document.querySelectorAll("[data-testid=results] li").length === 48);
  },
});
for (const way of ["drop", "paste"]) {
  await state(`picture by ${way}`, {
    act: async (page) => {
      await ready(page);
      await page.evaluate(
        ([bytes, way]) => {
          const data = new DataTransfer();
          data.items.add(new File([new Uint8Array(bytes)], "beetle.png", { type: "image/png" }));
          if (way === "paste") document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data }));
          else
            for (const type of ["dragenter", "drop"])
              document.body.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
        },
        [[...picture], way],
      );
      await page.waitForSelector('[data-testid=ranking][data-query="image:beetle.png"]');
    },
  });
}
await state("worker killed", {
  query: "?q=7",
  act: async (page) => {
    await ready(page);
    const before = await page.$eval("[data-metric=h_ap]", (cell) => cell.dataset.value);
    await page.workers()[0].evaluate(() => self.close());
    await page.waitForFunction(() =>
      document.querySelector("[data-testid=backend-reason]")?.textContent.includes("restarted"),
    );
    await page.waitForSelector("[data-state=ready]");
    must(
      before === (await page.$eval("[data-metric=h_ap]", (cell) => cell.dataset.value)),
      "another score after the restart",
    );
  },
});
await state("embedding for tests", {
  act: ready,
  expect: async (page) =>
    must(
      (await page.evaluate((bytes) => window.akin.embed("HAPPIER", new Uint8Array(bytes)), [...picture.subarray(0)]))
        .length === 24,
      "no embedding",
    ),
});
await state("theme by hand", {
  act: async (page) => {
    await ready(page);
    await page.click(".theme");
  },
  expect: async (page) =>
    must((await page.evaluate(() => document.documentElement.dataset.theme)) === "dark", "no dark theme"),
});

await browser.close();
await stop();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
