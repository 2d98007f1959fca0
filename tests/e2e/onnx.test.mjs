// An encoder that is an ONNX file finds in the page what it finds on the command line.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { PICTURES } from "./fixture.mjs";
import {
  akin,
  axeProblems,
  canonical,
  fixture,
  openSite,
  upload,
  waitForNotice,
  waitForRankings,
} from "./site.mjs";

const folder = mkdtempSync(join(tmpdir(), "akin-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const bytesOf = (path) => readFileSync(path);
const manifestOf = (bundle) =>
  JSON.parse(bytesOf(join(bundle, "bundle.json"), "utf8"));
const [encoder] = manifestOf(fixture("onnx")).encoders;
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** A copy of the bundle that `change` has altered, with the checksums of what it is now. */
function altered(name, change) {
  const bundle = join(folder, name);
  cpSync(fixture("onnx"), bundle, { recursive: true });
  const manifest = manifestOf(bundle);
  change(manifest, bundle);
  for (const file of manifest.files) {
    const bytes = bytesOf(join(bundle, file.path));
    Object.assign(file, { bytes: bytes.length, sha256: sha256(bytes) });
  }
  delete manifest.digest;
  manifest.digest = sha256(canonical(manifest));
  writeFileSync(join(bundle, "bundle.json"), JSON.stringify(manifest));
  return bundle;
}

/** The trainer's embeddings of the first two pictures change places. */
const exchanged = altered("exchanged", (manifest, bundle) => {
  const path = join(bundle, encoder.parity.embeddings);
  const numbers = bytesOf(path);
  const row = 4 * encoder.dimension;
  writeFileSync(
    path,
    Buffer.concat([
      numbers.subarray(row, 2 * row),
      numbers.subarray(0, row),
      numbers.subarray(2 * row),
    ]),
  );
});
const otherOutput = altered("output", (manifest) => {
  manifest.encoders[0].onnx.output = "logits";
});
const cut = altered("cut", (manifest, bundle) => {
  const path = join(bundle, encoder.onnx.file);
  writeFileSync(path, bytesOf(path).subarray(0, 5000));
  delete manifest.encoders[0].architecture.backbone.sha256;
});

const accept = async (page) => {
  const offer = await page.waitForSelector("[data-testid=offer]");
  const text = (await offer.innerText()).replaceAll(/\s+/g, " ");
  await page.click("[data-testid=offer] button");
  return text;
};
const parity = (page) =>
  page.$$eval("[data-testid=parity]", (notes) =>
    notes.map(({ dataset }) => ({ ...dataset, cosine: +dataset.cosine })),
  );
const results = (page) =>
  page.$$eval("[data-testid=results] > li", (items) =>
    items.slice(0, 10).map(({ dataset }) => Number(dataset.item)),
  );
const isRuntime = (url) => new URL(url).pathname.includes("/onnxruntime/");

for (const backend of ["cpu", "webgpu"]) {
  const { visit } = await openSite(
    backend,
    [],
    [fixture("onnx"), exchanged, otherOutput, cut],
  );

  test(`on ${backend} a picture finds the same first ten as akin search`, () =>
    visit({ query: "?q=5", wait: false }, async (page, requests) => {
      const text = await accept(page);
      assert.match(text, /of which \d+\.\d MB are ONNX Runtime/);
      await waitForRankings(page, "item:5");
      const [check, ...others] = await parity(page);
      assert.deepEqual(others, []);
      assert.equal(check.backend, backend);
      assert.ok(check.cosine >= 0.9999, `the cosine is ${check.cosine}`);
      assert.deepEqual(await axeProblems(page), []);
      for (const path of PICTURES.slice(0, 3)) {
        const found = JSON.parse(
          execFileSync(akin, ["search", fixture("onnx"), path, "--json"]),
        );
        await upload(page, path, bytesOf(path));
        await waitForRankings(page, `image:${path}`);
        assert.deepEqual(
          await results(page),
          found.items.map(({ item }) => item),
        );
      }
      const build = backend === "webgpu" ? "asyncify" : "threaded.wasm";
      assert.ok(requests.filter(isRuntime).some((url) => url.includes(build)));
    }));

  if (backend === "webgpu") {
    test("an engine that computes something else is left for the CPU, and the page says so", () =>
      visit(
        {
          query: "?q=5",
          wait: false,
          before: (context) =>
            context.route("**/ort.webgpu.min.mjs", (route) =>
              route.fulfill({
                contentType: "text/javascript",
                body: `
                  export const env = { wasm: {} };
                  export class Tensor {}
                  const output = { dims: [1, 37, 64], getData: async () => Float32Array.from({ length: 37 * 64 }, (_, i) => i % 7) };
                  export const InferenceSession = { create: async () => ({
                    inputNames: ["pixel_values"], outputNames: ["last_hidden_state"],
                    run: async () => ({ last_hidden_state: output }), release: async () => {},
                  }) };`,
              }),
            ),
        },
        async (page) => {
          await accept(page);
          await waitForRankings(page, "item:5");
          const checks = await parity(page);
          assert.deepEqual(
            checks.map(({ backend, passed }) => [backend, passed]),
            [
              ["webgpu", "false"],
              ["cpu", "true"],
            ],
          );
          assert.match(
            await page.textContent("[data-testid=backend-reason]"),
            /WebGPU was tried first, but encoder ONNX embeds pictures otherwise than its trainer did/,
          );
        },
      ));
    continue;
  }

  test("nothing of ONNX Runtime is loaded before the reader accepts", () =>
    visit({ query: "?q=5", wait: false }, async (page, requests) => {
      await page.waitForSelector("[data-testid=offer]");
      assert.deepEqual(requests.filter(isRuntime), []);
      assert.deepEqual(
        requests.filter((url) => url.endsWith(".onnx")),
        [],
      );
    }));

  const refusals = {
    "whose embeddings are not the trainer's": [
      "exchanged",
      "parity",
      /embeds pictures otherwise than its trainer did \(cosine 0?\.?.*0\.9999 is needed/,
    ],
    "whose file lacks the output": [
      "output",
      "bundle",
      /has no output logits; it has last_hidden_state/,
    ],
    "whose file is cut": ["cut", "weights", /could not run .*model\.onnx/],
  };
  for (const [what, [name, code, words]] of Object.entries(refusals))
    test(`an encoder ${what} is refused`, () =>
      visit(
        { query: `?bundle=bundles/${name}&q=5`, wait: false },
        async (page) => {
          await accept(page);
          const notice = await waitForNotice(page);
          assert.equal(notice.code, code, notice.text);
          assert.match(notice.text, words);
        },
      ));

  test("a damaged file, and a page without ONNX Runtime, are refused by name", async () => {
    const replies = [
      ["**/model.onnx", { body: "no network" }, "bundle", /model\.onnx/],
      ["**/model.onnx", { status: 404, body: "" }, "network", /model\.onnx/],
      [
        "**/onnxruntime/akin-files.json",
        { status: 404, body: "" },
        "network",
        /lacks ONNX Runtime, which the encoder ONNX needs/,
      ],
    ];
    for (const [files, reply, code, words] of replies) {
      const before = (context) =>
        context.route(files, (route) => route.fulfill(reply));
      await visit({ query: "?q=5", wait: false, before }, async (page) => {
        await accept(page);
        const notice = await waitForNotice(page);
        assert.equal(notice.code, code, notice.text);
        assert.match(notice.text, words);
      });
    }
  });
}
