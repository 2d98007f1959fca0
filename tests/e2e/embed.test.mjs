// The elements and the page inside pages of somebody else: what their policy must allow, and what a frame is told.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { launch, pageFolder } from "./site.mjs";

const TYPES = {
  css: "text/css",
  html: "text/html",
  js: "text/javascript",
  json: "application/json",
  wasm: "application/wasm",
};
const browser = await launch("cpu");
after(() => browser.close());

/** A site with some documents, and the built page in its folder `akin/`. Resolves to its address. */
function site(t, documents, headers = {}) {
  const server = createServer(async ({ url }, answer) => {
    const { pathname } = new URL(url, "http://localhost");
    const path = pathname.endsWith("/") ? `${pathname}index.html` : pathname;
    const content =
      documents[path] ??
      (await readFile(join(pageFolder, path.replace(/^\/akin\//, ""))).catch(
        () => null,
      ));
    const type = TYPES[path.split(".").pop()] ?? "application/octet-stream";
    answer.writeHead(content === null ? 404 : 200, {
      "content-type": type,
      ...headers,
    });
    answer.end(content ?? "");
  });
  t.after(() => server.close());
  return new Promise((fulfil) =>
    server.listen(0, "127.0.0.1", () =>
      fulfil(`http://127.0.0.1:${server.address().port}/`),
    ),
  );
}

/** Opens an address in a page of its own. */
async function visit(address, check) {
  const context = await browser.newContext({ serviceWorkers: "block" });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    await page.goto(address);
    await check(page);
  } finally {
    await context.close();
  }
}

const host = (script) =>
  `<!doctype html><html lang="de"><title>Kurs</title><script type="module" src="${script}"></script><akin-playground state="ranking=23013"></akin-playground>`;
const SCORES =
  "akin-playground[lang=en] [data-metric=h_ap]:not([data-value=''])";

test("an element works under the policy that embed.html names", async (t) => {
  const policy =
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; font-src 'self'";
  const address = await site(
    t,
    { "/index.html": host("akin/build/embed.js") },
    { "content-security-policy": policy },
  );
  await visit(address, (page) =>
    page.waitForSelector(SCORES, { state: "attached" }),
  );
});

test("an element says which part of a policy stops it", async (t) => {
  const address = await site(
    t,
    { "/index.html": host("akin/build/embed.js") },
    { "content-security-policy": "default-src 'self'" },
  );
  await visit(address, async (page) => {
    const said = await page.locator("akin-playground [role=alert]").innerText();
    assert.match(
      said,
      /does not allow WebAssembly\. Add 'wasm-unsafe-eval' to script-src/,
    );
  });
});

test("the playground may come from another site that allows it", async (t) => {
  const other = await site(t, {}, { "access-control-allow-origin": "*" });
  const address = await site(t, {
    "/index.html": host(`${other}akin/build/embed.js`),
  });
  await visit(address, (page) =>
    page.waitForSelector(SCORES, { state: "attached" }),
  );
});

test("the page says that it cannot run in a sandbox", async (t) => {
  const address = await site(
    t,
    {},
    { "content-security-policy": "sandbox allow-scripts" },
  );
  for (const document of ["akin/", "akin/embed.html"]) {
    await visit(address + document, async (page) => {
      const said = await page.locator("main > [role=alert]").innerText();
      assert.match(said, /cannot run here.*akin serve.*akin\.map/);
    });
  }
});

test("a page around the page learns its height, also when that changes", async (t) => {
  const frame = `<!doctype html><title>Around</title>
    <iframe id="akin" src="akin/?view=playground&hide=navigation" style="width: 900px; height: 100px"></iframe>
    <script>
      globalThis.heights = [];
      const frame = document.getElementById("akin");
      addEventListener("message", ({ source, data }) => {
        if (source !== frame.contentWindow || data.akin !== "height") return;
        heights.push(data.height);
        frame.style.height = data.height + "px";
      });
    </script>`;
  const address = await site(t, { "/index.html": frame });
  await visit(address, async (page) => {
    const inside = page.frameLocator("#akin");
    await inside.locator("[data-metric=h_ap]:not([data-value=''])").waitFor();
    await page.waitForTimeout(500);
    const fits = () =>
      page.evaluate(() => {
        const { documentElement } = frame.contentDocument;
        return [
          documentElement.scrollHeight,
          frame.clientHeight,
          heights.length,
        ];
      });
    const [content, height, messages] = await fits();
    assert.ok(
      content > 600 && Math.abs(content - height) <= 1,
      `${content} ${height}`,
    );
    await page.waitForTimeout(500);
    assert.deepEqual(await fits(), [content, height, messages]);
    // A narrower frame is taller.
    await page.evaluate(() => (frame.style.width = "420px"));
    await page.waitForTimeout(500);
    const [narrow, grown] = await fits();
    assert.ok(
      grown > height && Math.abs(narrow - grown) <= 1,
      `${narrow} ${grown}`,
    );
  });
});
