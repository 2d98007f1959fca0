// Asks `akin serve` a million times, in every way that clients do, and fails if its memory or its descriptors grow.
// Usage: node server.mjs AKIN BUNDLE PAGE [REQUESTS]. Needs /proc.
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";

const [akin, bundle, page, count = "1000000"] = process.argv.slice(2);
if (!page)
  throw new Error("usage: node server.mjs AKIN BUNDLE PAGE [REQUESTS]");
const ROUNDS = 10;
const CLIENTS = 32;
const perRound = Math.ceil(Number(count) / ROUNDS);

const server = spawn(akin, ["serve", bundle, "--page", page, "--port", "0"], {
  stdio: ["ignore", "pipe", "inherit"],
  // One heap for all threads. With a heap each, the memory rises for 600,000 requests, until every heap has had its
  // largest request, and a small leak could not be told from that.
  env: { ...process.env, MALLOC_ARENA_MAX: "1" },
});
const address = await new Promise((resolve, reject) => {
  server.once("exit", (code) =>
    reject(new Error(`akin serve ended with ${code}`)),
  );
  server.stdout.once("data", (text) => resolve(new URL(String(text).trim())));
});
const { hostname: host, port } = address;
const manifest = JSON.parse(readFileSync(join(bundle, "bundle.json"), "utf8"));
const small = [
  "/",
  "/bundles.json",
  "/bundle/bundle.json",
  `/bundle/${manifest.labels}`,
];
const large = `/bundle/${manifest.encoders[0].weights}`;

let agent;

/** One request. Resolves to its status when the answer has ended. `stop` leaves after the first bytes. */
const ask = (
  path,
  { method = "GET", headers = {}, body, stop = false, fresh = false } = {},
) =>
  new Promise((resolve, reject) => {
    const asked = request(
      {
        host,
        port,
        path,
        method,
        headers: { host: "localhost", ...headers },
        agent: fresh ? false : agent,
      },
      (answer) => {
        if (stop) answer.once("data", () => answer.destroy());
        else answer.resume();
        answer.once("close", () => resolve(answer));
      },
    );
    asked.once("error", reject);
    asked.end(body);
  });

/** A connection that begins a request and never ends it, until the client leaves. */
const halfOpen = async () => {
  const socket = connect({ host, port: Number(port) });
  socket.on("error", () => {});
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write("GET / HTTP/1.1\r\nHost: loc");
  await ask("/");
  socket.destroy();
};

const expect = (status, wanted) => {
  if (status !== wanted) throw new Error(`${status} instead of ${wanted}`);
};

let tag = "";
const KINDS = [
  async () => expect((await ask("/nothing")).statusCode, 404),
  async () =>
    expect(
      (await ask("/", { headers: { "if-none-match": tag } })).statusCode,
      304,
    ),
  async () =>
    expect(
      (await ask(large, { headers: { range: "bytes=100-5000" } })).statusCode,
      206,
    ),
  async () => expect((await ask(large, { method: "HEAD" })).statusCode, 200),
  async () =>
    expect(
      (await ask("/", { headers: { host: "evil.example.com" } })).statusCode,
      421,
    ),
  async () =>
    expect(
      (await ask("/", { headers: { "accept-encoding": "gzip" } })).statusCode,
      200,
    ),
  async () =>
    expect(
      (await ask("/", { method: "POST", body: "x", fresh: true })).statusCode,
      413,
    ),
  async () =>
    expect((await ask(large, { stop: true, fresh: true })).statusCode, 200),
  halfOpen,
];

/** Every tenth request is of another kind; all others read small files. */
async function one(number) {
  const kind =
    number % 10 === 0 ? KINDS[(number / 10) % KINDS.length] : undefined;
  if (kind) return kind();
  return expect((await ask(small[number % small.length])).statusCode, 200);
}

const descriptors = () => readdirSync(`/proc/${server.pid}/fd`).length;
const megabytes = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`))[1]) /
  1000;

/** Waits until the server holds no connection any more. Its time limits end each within a minute. */
async function untilIdle(idle) {
  const deadline = performance.now() + 120_000;
  while (descriptors() > idle) {
    if (performance.now() > deadline)
      throw new Error(
        `${descriptors()} descriptors without a client, ${idle} at the start`,
      );
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const idle = descriptors();
const began = performance.now();
const memory = [];
for (let round = 0; round < ROUNDS; round++) {
  agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  tag = (await ask("/")).headers.etag;
  let next = 0;
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (next < perRound) await one(next++);
    }),
  );
  const used = descriptors();
  agent.destroy();
  await untilIdle(idle);
  memory.push(megabytes());
  console.log(
    `${(round + 1) * perRound} requests: ${memory.at(-1).toFixed(1)} MB, ${used} descriptors in use, ${descriptors()} afterwards`,
  );
}
const seconds = (performance.now() - began) / 1000;
const left = descriptors();
server.removeAllListeners("exit");
server.kill("SIGINT");

const [first, last] = [memory[0], memory.at(-1)];
console.log(
  `figure: requests to akin serve: ${(ROUNDS * perRound).toLocaleString("en")} in ${seconds.toFixed(0)} s`,
);
console.log(
  `figure: memory of akin serve after the first tenth and after all: ${first.toFixed(1)} and ${last.toFixed(1)} MB`,
);
console.log(
  `figure: descriptors of akin serve without a connection, before and after: ${idle} and ${left}`,
);
// Allocators keep what they have had once, so the first tenth is the measure.
if (last > 1.05 * first + 1)
  throw new Error(
    `the memory has grown from ${first.toFixed(1)} to ${last.toFixed(1)} MB`,
  );
