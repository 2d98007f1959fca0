// What the page does when the network, the memory or the server fails it, and with a second tab.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { after, test } from "node:test";
import { PICTURES } from "./fixture.mjs";
import {
  axeProblems,
  bundle,
  fixture,
  inWorker,
  openSite,
  upload,
  waitForNotice,
  waitForRankings,
} from "./site.mjs";

const site = await openSite("cpu");
const [encoder] = bundle.encoders;
const query = `?${new URLSearchParams({ encoder: encoder.name, q: "5" })}`;
const weights = readFileSync(fixture("bundle", encoder.weights));

/**
 * A server before `akin serve` that passes everything on, but cuts the connection in the middle of a file as often as
 * `cuts` says. It notes the requests for that file.
 */
async function cuttingServer(file) {
  const state = { cuts: 0, requests: [], arrived: () => {} };
  const { hostname, port } = new URL(site.address);
  const server = createServer(({ url, method, headers }, response) => {
    if (url === "/arrived") {
      state.arrived();
      response.writeHead(204).end();
      return;
    }
    const isFile = url.endsWith(`/${file}`);
    const passed = request(
      { hostname, port, path: url, method, headers },
      (answer) => {
        if (isFile)
          state.requests.push({
            range: headers.range,
            status: answer.statusCode,
          });
        response.writeHead(answer.statusCode, answer.headers);
        if (!isFile || state.cuts === 0) return answer.pipe(response);
        state.cuts--;
        const length = Number(answer.headers["content-length"]);
        const parts = [];
        answer.on("data", (part) => parts.push(part));
        answer.on("end", () => {
          const half = Buffer.concat(parts).subarray(0, Math.ceil(length / 2));
          response.write(half);
          state.arrived = () => response.destroy();
        });
      },
    );
    passed.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(state, {
    address: `http://127.0.0.1:${server.address().port}/`,
  });
}

/** Lets the worker tell the server when it has read bytes of the file, so that the cut is after them. */
const tellOfBytes = (file) => (context) =>
  context.route("**/build/worker.js", async (route) => {
    const response = await route.fetch();
    const tell = `{
      const load = self.fetch;
      self.fetch = async (address, options) => {
        const response = await load(address, options);
        if (!String(address).endsWith("/${file}")) return response;
        const reader = response.body.getReader();
        const read = reader.read.bind(reader);
        reader.read = async () => {
          const piece = await read();
          if (!piece.done) await load("/arrived");
          return piece;
        };
        response.body.getReader = () => reader;
        return response;
      };
    }`;
    await route.fulfill({
      response,
      body: `${tell}\n${await response.text()}`,
    });
  });

const cut = await cuttingServer(encoder.weights);
const behindCuts = await openSite("cpu", [], undefined, cut.address);

test("a download that breaks off goes on where it was, and the encoder passes its test", () => {
  cut.cuts = 2;
  cut.requests.length = 0;
  const before = tellOfBytes(encoder.weights);
  return behindCuts.visit({ query, before }, async (page) => {
    await waitForRankings(page, "item:5");
    const [first, ...rest] = cut.requests;
    assert.deepEqual(first, { range: undefined, status: 200 });
    assert.equal(rest.length, 2);
    for (const { range, status } of rest) {
      assert.equal(status, 206);
      const [, start] = /^bytes=(\d+)-$/.exec(range);
      assert.ok(Number(start) > 0 && Number(start) < weights.length, range);
    }
  });
});

test("the page says that the connection broke off, and a reader can try again", () => {
  cut.cuts = Infinity;
  // What the page says until it gives up, by the role of where it says it.
  const listen = async (context) => {
    await tellOfBytes(encoder.weights)(context);
    await context.addInitScript(() => {
      globalThis.said = new Set();
      new MutationObserver(() => {
        const note = document.querySelector("[data-testid=broken]");
        if (note)
          globalThis.said.add(`${note.role}: ${note.textContent.trim()}`);
      }).observe(document, {
        subtree: true,
        childList: true,
        characterData: true,
      });
    });
  };
  return behindCuts.visit(
    { query, wait: false, before: listen },
    async (page) => {
      const { code, text } = await waitForNotice(page);
      assert.ok(
        (await page.evaluate(() => [...globalThis.said])).includes(
          "status: The connection broke off. The download goes on by itself.",
        ),
      );
      assert.equal(code, "network");
      assert.match(text, /weights\.bpk broke off 4 times.*try again/i);
      assert.deepEqual(await axeProblems(page), []);
      cut.cuts = 0;
      await page.click("[data-testid=notice] button");
      await waitForRankings(page, "item:5");
    },
  );
});

/** Lets the worker get no memory for more than 100 kB in one piece, until the test allows it. */
const refuseMemory = (context) =>
  context.route("**/build/worker.js", async (route) => {
    const response = await route.fetch();
    const refuse = `self.Uint8Array = new Proxy(Uint8Array, {
      construct(target, values, self) {
        if (!globalThis.akinHasMemory && values[0] > 100_000) throw new RangeError("Array buffer allocation failed");
        return Reflect.construct(target, values, self);
      },
    });`;
    await route.fulfill({
      response,
      body: `${refuse}\n${await response.text()}`,
    });
  });

test("a browser without memory says so, and the reader can try again", () =>
  site.visit({ query, wait: false, before: refuseMemory }, async (page) => {
    const { code, text } = await waitForNotice(page);
    assert.equal(code, "memory", text);
    assert.match(text, /no memory left for .* MB.*close other tabs/i);
    // A failed opening ends the worker; the next one has memory.
    await page.context().unroute("**/build/worker.js");
    await page.click("[data-testid=notice] button");
    await waitForRankings(page, "item:5");
  }));

/** Keeps the memory of the engine as `akinMemory`, so that a test can use it up. */
const keepMemory = inWorker(`
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = async (...values) => {
    const made = await instantiate(...values);
    self.akinMemory = (made.instance ?? made).exports.memory;
    return made;
  };
`);

test("an engine without memory says so, restarts, and answers again", () =>
  site.visit({ query, before: keepMemory }, async (page) => {
    await waitForRankings(page, "item:5");
    await page.workers()[0].evaluate(() => {
      for (let pages = 2 ** 15; pages >= 1; pages /= 2) {
        try {
          for (;;) self.akinMemory.grow(pages);
        } catch {
          // A smaller piece may still fit.
        }
      }
    });
    // More pixels than fit into what the engine has kept free.
    const picture = await page.evaluate(async () => {
      const canvas = new OffscreenCanvas(8000, 6000);
      canvas.getContext("2d").fillRect(10, 10, 100, 100);
      const blob = await canvas.convertToBlob({ type: "image/png" });
      return [...new Uint8Array(await blob.arrayBuffer())];
    });
    await upload(page, "large.png", Buffer.from(picture));
    const { code, text } = await waitForNotice(page);
    assert.equal(code, "memory", text);
    assert.match(text, /no memory left for the engine.*smaller picture/i);
    await upload(page, "small.jpg", readFileSync(PICTURES[0]));
    await waitForRankings(page, "image:small.jpg");
  }));

/** Serves another manifest and other weights from now on, as after a new export. */
async function replaceBundle(context) {
  await context.route("**/bundle/bundle.json", (route) =>
    route.fulfill({
      contentType: "application/json",
      body: readFileSync(fixture("half", "bundle.json"), "utf8"),
    }),
  );
  await context.route(/\/bundle\/(?!bundle\.json)/, (route) => {
    const { pathname } = new URL(route.request().url());
    const file = fixture("half", pathname.replace("/bundle/", ""));
    return existsSync(file)
      ? route.fulfill({ body: readFileSync(file) })
      : route.fulfill({ status: 404 });
  });
}

test("a bundle that is replaced while it is open is opened again, with the reason", () =>
  site.visit({ query }, async (page) => {
    await waitForRankings(page, "item:5");
    await replaceBundle(page.context());
    await page.evaluate(() => (globalThis.akinBefore = true));
    // The files of the next encoder are those of the new bundle.
    await page
      .locator("[data-testid=encoders] input")
      .nth(1)
      .check({ force: true });
    await page.waitForFunction(() => !globalThis.akinBefore);
    const note = await page.waitForSelector("[data-testid=replaced]");
    await page.waitForFunction(
      () =>
        document.querySelector("[data-testid=replaced]").textContent.length > 0,
    );
    assert.match(
      await note.innerText(),
      /was replaced on the server.*shows the new one/s,
    );
    await waitForRankings(page, "item:5");
    assert.match(await page.innerText("main"), /Half/);
    assert.deepEqual(await axeProblems(page), []);
    // It is said once.
    await page.reload();
    await waitForRankings(page, "item:5");
    assert.equal(await page.$("[data-testid=replaced]"), null);
  }));

test("the reader is told that an own picture is gone after that", () =>
  site.visit({ query }, async (page) => {
    await upload(page, "mine.jpg", readFileSync(PICTURES[0]));
    await waitForRankings(page, "image:mine.jpg");
    await replaceBundle(page.context());
    await page
      .locator("[data-testid=encoders] input")
      .nth(1)
      .check({ force: true });
    await page
      .locator("[data-testid=replaced]", {
        hasText: /“mine\.jpg” is gone; choose it again/,
      })
      .waitFor();
  }));

test("two tabs share what is kept, and each goes on when the other is closed", () =>
  site.visit({ query, serviceWorkers: "allow" }, async (page) => {
    await waitForRankings(page, "item:5");
    await page.waitForSelector("[data-testid=offline][data-state=kept]");
    const second = await page.context().newPage();
    second.setDefaultTimeout(180_000);
    await second.goto(site.address + query);
    await waitForRankings(second, "item:5");
    // What one tab removes, the other does not need.
    await second.click("[data-testid=empty-cache]");
    await second.waitForSelector("[data-testid=offline][data-state=empty]");
    await page.click(".samples [data-item]:not([aria-pressed=true])");
    await page.waitForFunction(
      () =>
        document.querySelector("[data-testid=ranking]")?.dataset.query !==
          "item:5" &&
        document.querySelector("[data-testid=ranking]")?.ariaBusy === "false",
    );
    await second.close();
    await page.reload();
    await page.waitForSelector("[data-testid=ranking][aria-busy=false]");
  }));
