// What `akin serve` lets other sites do: nothing. And what its page does not do for them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { launch, openSite, pageFolder, waitForResults } from "./site.mjs";

const { address, visit } = await openSite("cpu");

/** The policy in a document of the page. */
const policyOf = (name) =>
  /http-equiv="Content-Security-Policy"\s+content="([^"]*)"/.exec(
    readFileSync(join(pageFolder, name), "utf8"),
  )[1];

test("every file has the policy of the page as a header, and both documents have the same", async () => {
  const policy = policyOf("index.html");
  assert.equal(policyOf("embed.html"), policy);
  for (const path of [
    "",
    "embed.html",
    "build/worker.js",
    "akin-web_bg.wasm",
    "bundle/bundle.json",
    "bundles.json",
    "nothing",
  ]) {
    const { headers } = await fetch(address + path);
    assert.equal(
      headers.get("content-security-policy"),
      `${policy}; frame-ancestors 'self'`,
      path,
    );
    assert.equal(headers.get("x-content-type-options"), "nosniff", path);
    assert.equal(
      headers.get("cross-origin-resource-policy"),
      "same-origin",
      path,
    );
    assert.equal(headers.get("x-frame-options"), "SAMEORIGIN", path);
    assert.equal(headers.get("referrer-policy"), "no-referrer", path);
  }
});

test("the page works under its policy, in every view and in its worker", () =>
  visit(
    {
      before: (context) =>
        context.addInitScript(() => {
          globalThis.violations = [];
          document.addEventListener("securitypolicyviolation", (event) =>
            globalThis.violations.push(
              `${event.violatedDirective}: ${event.blockedURI}`,
            ),
          );
        }),
    },
    async (page) => {
      for (const view of ["playground", "steps", "map", "lesson"]) {
        await page.click(`nav a[href*="view=${view}"]`);
        await page.waitForSelector(`#view-${view} h1`);
      }
      assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
    },
  ));

test("a compressed engine is the engine", async () => {
  const answer = await fetch(`${address}akin-web_bg.wasm`, {
    headers: { "accept-encoding": "gzip" },
  });
  assert.equal(answer.headers.get("content-encoding"), "gzip");
  assert.equal(answer.headers.get("content-type"), "application/wasm");
  const bytes = Buffer.from(await answer.arrayBuffer());
  assert.ok(bytes.equals(readFileSync(join(pageFolder, "akin-web_bg.wasm"))));
});

test("a page of another site can neither frame this one nor load its files", async (t) => {
  const html = `<!doctype html><title>Another site</title>
    <iframe src="${address}"></iframe>
    <script>
      globalThis.results = Promise.all([
        fetch("${address}bundle/bundle.json").then(() => "read", () => "refused"),
        new Promise((resolve) => {
          const image = new Image();
          image.onload = () => resolve("shown");
          image.onerror = () => resolve("refused");
          image.src = "${address}build/mark.svg";
        }),
        import("${address}build/embed.js").then(() => "run", () => "refused"),
      ]);
    </script>`;
  // Under a name of its own: another port of the same name is the same site.
  const other = createServer((_, response) =>
    response.writeHead(200, { "content-type": "text/html" }).end(html),
  );
  await new Promise((resolve) => other.listen(0, "127.0.0.1", resolve));
  const browser = await launch("cpu", [
    "--host-resolver-rules=MAP evil.example.com 127.0.0.1",
  ]);
  t.after(async () => {
    await browser.close();
    other.close();
  });
  const page = await browser.newPage();
  await page.goto(`http://evil.example.com:${other.address().port}/`);
  assert.deepEqual(await page.evaluate(() => globalThis.results), [
    "refused",
    "refused",
    "refused",
  ]);
  const [, frame] = page.frames();
  assert.equal(await frame.locator("main").count(), 0);
});

test("a name that another site points to this machine reads nothing", async (t) => {
  const browser = await launch("cpu", [
    "--host-resolver-rules=MAP evil.example.com 127.0.0.1",
  ]);
  t.after(() => browser.close());
  const page = await browser.newPage();
  const { port } = new URL(address);
  const answer = await page.goto(
    `http://evil.example.com:${port}/bundle/bundle.json`,
  );
  assert.equal(answer.status(), 421);
  assert.match(await answer.text(), /--host evil\.example\.com/);
});

test("the page opens under the name localhost, too", async (t) => {
  const browser = await launch("cpu");
  t.after(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(180_000);
  await page.goto(address.replace("127.0.0.1", "localhost"));
  await waitForResults(page);
});
