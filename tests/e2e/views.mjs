// Serves the views that need no engine, and opens them in headless Chromium. `openViews` needs no binary
// and no bundle.
//
// Environment: CHROMIUM is the browser (default: /usr/bin/chromium), and AKIN_PAGE a built page (default:
// www/dist where it is, else the page that the mock server builds).
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { launchBrowser, visitor } from "./browser.mjs";

export { axeProblems } from "./browser.mjs";

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".woff2": "font/woff2",
};
const TIMEOUT = 20_000;

/** Serves a folder. Resolves to its address and a function that stops the server. */
function serveFolder(folder) {
  const server = createServer((request, response) => {
    const path = normalize(
      new URL(request.url, "http://localhost").pathname,
    ).replace(/\/$/, "/index.html");
    const file = join(folder, path);
    if (!file.startsWith(folder) || !existsSync(file))
      return response.writeHead(404).end();
    response
      .writeHead(200, {
        "content-type": TYPES[extname(file)] ?? "application/octet-stream",
      })
      .end(readFileSync(file));
  });
  return new Promise((resolve) =>
    server.listen(0, "127.0.0.1", () =>
      resolve({
        address: `http://localhost:${server.address().port}/`,
        stop: () => server.close(),
      }),
    ),
  );
}

async function servePage() {
  const page =
    process.env.AKIN_PAGE ??
    fileURLToPath(new URL("../../www/dist", import.meta.url));
  if (existsSync(join(page, "index.html"))) return serveFolder(page);
  const { serveMock } = await import("../../www/mock/serve.mjs");
  return serveMock(0);
}

/** As `openSite` of site.mjs. */
export async function openViews() {
  const { address, stop } = await servePage();
  const browser = await launchBrowser();
  after(async () => {
    await browser.close();
    stop();
  });
  return { address, visit: visitor(browser, address, { timeout: TIMEOUT }) };
}
