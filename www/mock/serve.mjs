// `npm run mock`: serves the page with a stand-in engine, an invented bundle and the real science module, for work on
// its design. With `--training` it builds the training ground, too, which takes minutes the first time.
import { context } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { copyAssets, options } from "../scripts/build.mjs";
import { buildModules } from "../scripts/wasm.mjs";
import { makeBundle } from "./bundle.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const out = join(root, "mock/out");

/** Builds everything into mock/out and serves it. Returns the address and a function that stops the server. */
export async function serveMock(port = 8090) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  // Without this line there is no service worker, so that every change shows.
  const page = readFileSync(join(root, "index.html"), "utf8").replace(/\s*<meta name="akin-service-worker"[^>]*>/, "");
  writeFileSync(join(out, "index.html"), page);
  copyFileSync(join(root, "embed.html"), join(out, "embed.html"));
  copyFileSync(join(root, "mock/akin-web.js"), join(out, "akin-web.js"));
  writeFileSync(join(out, "akin-web_bg.wasm"), emptyModule(2_100_000));
  const modules = ["akin-science", ...(process.argv.includes("--training") ? ["akin-training-ground"] : [])];
  buildModules(modules, out);
  makeBundle(join(out, "bundle"));
  makeBundle(join(out, "bundles/others"), { seed: 5, title: "Other creatures" });
  makeBundle(join(out, "bundles/codes"), { title: "Codes", codes: true });
  const bundles = [
    { path: "bundle", title: "Biomorphs", description: "Drawn creatures." },
    { path: "bundles/others", title: "Other creatures", description: "More drawn creatures." },
    { path: "bundles/codes", title: "Codes", description: "The creatures, in codes of bits." },
  ];
  writeFileSync(join(out, "bundles.json"), JSON.stringify({ format: "akin-bundles", version: 1, bundles }));
  copyAssets(join(out, "build"));
  const build = await context(options(join(out, "build")));
  await build.rebuild();
  // esbuild builds again before it answers. It sets no headers, so it stands behind a server that does.
  const behind = await build.serve({ servedir: out, port: 0, host: "127.0.0.1" });
  const server = createServer(addHeaders(behind.port, securityHeaders(page)));
  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  const stop = () => {
    server.closeAllConnections();
    server.close();
    return build.dispose();
  };
  return { address: `http://localhost:${server.address().port}/`, stop };
}

/** The headers of `akin serve`: the page's own policy, and those that keep other sites out. */
function securityHeaders(page) {
  const [, policy] = /http-equiv="Content-Security-Policy"\s+content="([^"]*)"/.exec(page);
  return {
    "content-security-policy": `${policy}; frame-ancestors 'self'`,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
  };
}

/** Passes requests on to a port, and adds headers to the answers. */
const addHeaders = (port, headers) => (incoming, outgoing) => {
  const { method, url } = incoming;
  const passed = request(
    { host: "127.0.0.1", port, method, path: url, headers: { ...incoming.headers, host: `127.0.0.1:${port}` } },
    (answer) => {
      outgoing.writeHead(answer.statusCode, { ...answer.headers, ...headers });
      answer.pipe(outgoing);
    },
  );
  passed.on("error", () => outgoing.destroy());
  incoming.pipe(passed);
};

/** A valid wasm module of about `size` bytes: a header and one custom section of zeros. */
function emptyModule(size) {
  const length = [];
  for (let rest = size; rest > 0; rest >>= 7) length.push((rest & 127) | (rest > 127 ? 128 : 0));
  const section = Buffer.alloc(size);
  section[0] = 1;
  section[1] = 0x61;
  return Buffer.concat([Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 0]), Buffer.from(length), section]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.error((await serveMock()).address);
}
