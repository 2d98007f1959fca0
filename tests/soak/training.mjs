// Trains for an hour and fails if the memory or the descriptors of `akin train` grow.
// Usage: node training.mjs AKIN [SECONDS]. Needs /proc.
import { spawn, spawnSync } from "node:child_process";
import {
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [akin, seconds = "3600"] = process.argv.slice(2);
if (!akin) throw new Error("usage: node training.mjs AKIN [SECONDS]");
/** The number of measurements in the whole time. */
const SAMPLES = 120;
/** The share of the time in which memory may still grow: everything is used for the first time. */
const WARM_UP = 0.1;

// More steps than an hour has. Every kind of work occurs often: checkpoints, evaluations on the way, augmentation.
const CONFIG = `
[run]
steps = 100_000_000
device = "cpu"
checkpoint_every_steps = 500
evaluate_every_epochs = 200

[data]
kind = "csv"
path = "data/labels.csv"
levels = ["order", "family", "species"]

[augment]

[model]
backbone = { kind = "small_resnet", width = 4 }
head = { dimension = 16 }
preprocessing = { name = "imagenet", crop = 32 }

[loss]
kind = "happier"

[sampler]
classes_per_batch = 4
images_per_class = 4

[eval]
metrics = ["h_ap"]
`;

const folder = mkdtempSync(join(tmpdir(), "akin-soak-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

function run(...args) {
  const { status, stderr } = spawnSync(akin, args, {
    cwd: folder,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`akin ${args.join(" ")}: ${stderr}`);
}

writeFileSync(join(folder, "soak.toml"), CONFIG);
// prettier-ignore
run("biomorphs", "data", "--branching", "2,2,3", "--images-per-class", "8", "--side", "32");

const training = spawn(akin, ["train", "soak.toml", "--out", "run"], {
  cwd: folder,
  stdio: ["ignore", "ignore", "pipe"],
});
let talk = "";
training.stderr.on("data", (text) => (talk = (talk + text).slice(-2000)));
const ended = new Promise((resolve) => training.once("close", resolve));

const descriptors = () => readdirSync(`/proc/${training.pid}/fd`).length;
const megabytes = () =>
  Number(
    /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${training.pid}/status`))[1],
  ) / 1000;

const samples = [];
for (let sample = 0; sample < SAMPLES; sample++) {
  await new Promise((resolve) =>
    setTimeout(resolve, (1000 * Number(seconds)) / SAMPLES),
  );
  if (training.exitCode !== null)
    throw new Error(`akin train has ended with ${training.exitCode}: ${talk}`);
  samples.push({ memory: megabytes(), descriptors: descriptors() });
  if (sample % 10 === 9)
    console.log(
      `${Math.round((Number(seconds) * (sample + 1)) / SAMPLES)} s: ${samples.at(-1).memory.toFixed(1)} MB, ${samples.at(-1).descriptors} descriptors`,
    );
}
training.kill("SIGTERM");
const status = await ended;
if (status !== 130) throw new Error(`akin train has ended with ${status}`);
// It exits with 1, because the training is not finished.
const verified = JSON.parse(
  spawnSync(akin, ["verify", "run", "--json"], { cwd: folder }).stdout,
);
const faulty = verified.directories[0].checks.filter(
  ({ state }) => state === "faulty",
);
if (faulty.length > 0) throw new Error(JSON.stringify(faulty));
const steps = Number(/Stopped[^]*?step (\d+)/.exec(talk)?.[1]);
if (!(steps > 0)) throw new Error(`no step is named in: ${talk}`);

const warm = samples.slice(SAMPLES * WARM_UP);
const part = Math.ceil(warm.length / 4);
const quarters = [warm.slice(0, part), warm.slice(-part)];
const of = (choose, key) =>
  quarters.map((some) => choose(...some.map((sample) => sample[key])));
// A checkpoint takes memory and a descriptor for a moment: memory has to be enough for that, descriptors come back.
const memory = of(Math.max, "memory");
const idle = of(Math.min, "descriptors");
const both = (pair, digits) =>
  pair.map((number) => number.toFixed(digits)).join(" and ");
console.log(
  `figure: training without a pause: ${steps.toLocaleString("en")} steps in ${seconds} s`,
);
console.log(
  `figure: peak memory of akin train in the first and the last quarter after warm-up: ${both(memory, 1)} MB`,
);
console.log(
  `figure: fewest descriptors of akin train in the first and the last quarter after warm-up: ${both(idle, 0)}`,
);
if (memory[1] > 1.05 * memory[0] + 4)
  throw new Error(`the memory has grown: ${both(memory, 1)} MB`);
if (idle[1] > idle[0])
  throw new Error(`the descriptors have grown: ${both(idle, 0)}`);
