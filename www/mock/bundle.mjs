// Writes a small invented bundle: drawings of creatures of 3 orders, 9 families and 27 species.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { createHash } from "node:crypto";

const LEVELS = ["order", "family", "species"];
const TILE = 96;
const COLUMNS = 20;
const EACH = 12;

function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const SYLLABLES = [
  "ver",
  "mo",
  "lu",
  "sa",
  "tri",
  "ne",
  "cor",
  "di",
  "pha",
  "ro",
  "bel",
  "qui",
  "ast",
  "or",
  "mel",
  "in",
];
function word(random, ending) {
  const parts = Array.from({ length: 2 }, () => SYLLABLES[Math.floor(random() * SYLLABLES.length)]);
  const text = parts.join("") + ending;
  return text[0].toUpperCase() + text.slice(1);
}

/** The genes of a child: those of its parent, each moved at random by up to `by` / 2. */
const drift = (genes, random, by) => genes.map((gene) => Math.min(1, Math.max(0, gene + by * (random() - 0.5))));

/** With `codes` the encoders are hash encoders of one family, of 16 and 32 bits. */
export function makeBundle(folder, { seed = 11, title = "Biomorphs", codes = false } = {}) {
  const random = generator(seed);
  const classes = [[], [], []];
  const parents = [[], [], []];
  const species = [];
  for (let order = 0; order < 3; order++) {
    classes[0].push(word(random, "ptera"));
    const orderGenes = Array.from({ length: 8 }, (_, gene) => (gene === 0 ? (order + 0.5) / 3 : random()));
    for (let family = 0; family < 3; family++) {
      const familyGenes = drift(orderGenes, random, 0.5);
      classes[1].push(word(random, "idae"));
      parents[1].push(order);
      for (let kind = 0; kind < 3; kind++) {
        classes[2].push(`${word(random, "a")} ${word(random, "is").toLowerCase()}`);
        parents[2].push(classes[1].length - 1);
        species.push({
          path: [order, classes[1].length - 1, classes[2].length - 1],
          genes: drift(familyGenes, random, 0.28),
        });
      }
    }
  }

  const items = Array.from({ length: species.length * EACH }, (_, index) => species[(index * 7) % species.length]);
  const rows = Math.ceil(items.length / COLUMNS);
  const sheet = new Uint8Array(COLUMNS * TILE * rows * TILE * 3);
  items.forEach(({ genes }, index) => draw(sheet, index, drift(genes, random, 0.1), random));

  const labels = new Uint32Array(items.flatMap(({ path }) => path));
  const embed = (weights, spread, dimension) => {
    const axes = generator(5);
    const centre = Array.from({ length: 3 }, () =>
      Array.from({ length: 27 }, () => Array.from({ length: dimension }, () => axes() - 0.5)),
    );
    return new Float32Array(
      items.flatMap(({ path }) => {
        const raw = Array.from({ length: dimension }, (_, axis) =>
          path.reduce((sum, id, level) => sum + weights[level] * centre[level][id][axis], spread * (random() - 0.5)),
        );
        const length = Math.hypot(...raw);
        return raw.map((value) => value / length);
      }),
    );
  };

  const files = [];
  const put = (path, bytes) => {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), bytes);
    if (path !== "bundle.json")
      files.push({ path, bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") });
  };
  const buffer = (array) => Buffer.from(array.buffer);
  put("labels.bin", buffer(labels));
  put("thumbnails-0.png", png(sheet, COLUMNS * TILE, rows * TILE));
  put("parity/0.png", png(new Uint8Array(TILE * TILE * 3), TILE, TILE));
  const report = (h_ap, ap) => ({
    config: { similarity: codes ? "hamming" : "cosine" },
    queries: items.length,
    ranked: items.length - 1,
    overall: { queries: items.length, h_ap, ndcg: 0.62 + h_ap / 3, asi: h_ap - 0.11 },
    levels: LEVELS.map((name, index) => ({
      name,
      queries: items.length,
      ap: ap[index],
      map_at_r: ap[index] - 0.08,
      recall: { 1: ap[index] + 0.2 },
    })),
  });
  const encoder = (name, description, weights, spread, results, dimension = 24) => {
    const at = name.toLowerCase().replaceAll(" ", "-");
    put(`${at}/weights.bpk`, Buffer.alloc(640_000, 7));
    put(`${at}/gallery.f32`, buffer(embed(weights, spread, dimension)));
    put(`${at}/parity.f32`, Buffer.alloc(4 * dimension));
    return {
      name,
      description,
      dimension,
      architecture: {},
      preprocessing: {},
      parity: { embeddings: `${at}/parity.f32`, cosine: 0.9999 },
      weights: `${at}/weights.bpk`,
      gallery_embeddings: `${at}/gallery.f32`,
      query_embeddings: null,
      report: results,
      ...lookInside(at, items, weights, put),
    };
  };
  const hash = (bits, results) => ({
    ...encoder(`HPDH ${bits}`, "Codes whose distances follow the tree.", [0.9, 0.7, 1], 1.1, results, bits),
    family: "HPDH",
  });
  const plain = () => [
    encoder(
      "NormSoftmax",
      "Trained to tell species apart, without their kinship.",
      [0.2, 0.5, 1],
      1.1,
      report(0.5441, [0.4919, 0.5132, 0.5797]),
    ),
    encoder(
      "HAPPIER",
      "Trained on the whole tree: cousins are nearer than strangers.",
      [1, 0.85, 0.9],
      1.0,
      report(0.7228, [0.7906, 0.6656, 0.5975]),
    ),
  ];
  const encoders = codes
    ? [hash(16, report(0.511, [0.6012, 0.5021, 0.4877])), hash(32, report(0.583, [0.6712, 0.5533, 0.5301]))]
    : plain();
  put(
    "bundle.json",
    Buffer.from(
      JSON.stringify({
        format: "akin-bundle",
        version: 1,
        title,
        licence: "CC0-1.0",
        description: "Drawn creatures whose genes drift down a family tree.",
        model_card:
          "# Biomorphs\n\nTwo small residual networks with the **same start** and budget.\n\n- Trained for 3 minutes on two cores.\n- Tested on species that it has never seen.\n\n| loss | H-AP |\n|---|---|\n| `norm_softmax` | 0.544 |\n| `happier` | 0.723 |\n",
        taxonomy: { levels: LEVELS, classes, parents },
        gallery: { count: items.length },
        queries: { count: 0 },
        labels: "labels.bin",
        parity_pictures: ["parity/0.png"],
        thumbnails: { tile: TILE, columns: COLUMNS, rows: 20, sheets: ["thumbnails-0.png"] },
        evaluation_config: {},
        encoders,
        files,
        digest: "",
      }),
    ),
  );
}

/** Draws one creature into its tile, by testing each point against ellipses and strokes. */
function draw(sheet, index, genes, random) {
  const [plan, length, width, hue, spots, legs, antennae, tone] = genes;
  const hueAngle = (plan * 0.8 + hue * 0.25) * Math.PI * 2;
  const colour = (light) =>
    [0, 1, 2].map((channel) =>
      Math.max(0, Math.min(255, light * (140 + 80 * Math.cos(hueAngle + (channel * 2 * Math.PI) / 3)))),
    );
  const paper = 236 + random() * 12;
  const turn = (random() - 0.5) * 0.9;
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  const bodyWidth = 0.16 + 0.2 * width;
  const bodyLength = 0.28 + 0.22 * length;
  const legCount = 2 + Math.floor(plan * 3) + Math.round(legs);
  const stroke = (x, y, ax, ay, bx, by, thick) => {
    const along = Math.max(
      0,
      Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2)),
    );
    return Math.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay)) < thick;
  };
  const at = (x, y) => {
    const mirrored = Math.abs(x);
    if (((mirrored - 0.07) / 0.035) ** 2 + ((y + bodyLength + 0.1) / 0.035) ** 2 < 1) return [30, 28, 26];
    if ((x / (0.1 + bodyWidth * 0.35)) ** 2 + ((y + bodyLength + 0.06) / 0.15) ** 2 < 1)
      return colour(0.62 + 0.2 * tone);
    if ((x / bodyWidth) ** 2 + (y / bodyLength) ** 2 < 1) {
      const marked =
        spots > 0.5
          ? Math.hypot(((mirrored * 7 + 0.5) % 1) - 0.5, ((y * 7 + 9.5) % 1) - 0.5) < 0.2 + 0.2 * (spots - 0.5)
          : Math.sin(y * (18 + 30 * spots)) > 0.55;
      return colour(marked ? 0.5 + 0.2 * tone : 0.9 + 0.2 * tone);
    }
    for (let leg = 0; leg < legCount; leg++) {
      const start = (leg / (legCount - 1) - 0.5) * bodyLength * 1.3;
      if (stroke(mirrored, y, bodyWidth * 0.7, start, bodyWidth + 0.13 + 0.12 * legs, start * 1.7 + 0.05, 0.018))
        return [70, 60, 52];
    }
    if (
      stroke(mirrored, y, 0.04, -bodyLength - 0.12, 0.12 + 0.15 * antennae, -bodyLength - 0.2 - 0.16 * antennae, 0.014)
    )
      return [70, 60, 52];
    return null;
  };
  const [left, top] = [(index % COLUMNS) * TILE, Math.floor(index / COLUMNS) * TILE];
  for (let row = 0; row < TILE; row++) {
    for (let column = 0; column < TILE; column++) {
      const sum = [0, 0, 0];
      for (const [dx, dy] of [
        [0.25, 0.25],
        [0.75, 0.25],
        [0.25, 0.75],
        [0.75, 0.75],
      ]) {
        const [u, v] = [((column + dx) / TILE - 0.5) * 1.75, ((row + dy) / TILE - 0.44) * 1.75];
        const hit = at(u * cos + v * sin, v * cos - u * sin) ?? [paper, paper - 4, paper - 14];
        hit.forEach((value, channel) => (sum[channel] += value / 4));
      }
      sheet.set(sum, ((top + row) * COLUMNS * TILE + left + column) * 3);
    }
  }
}

function png(rgb, width, height) {
  const raw = Buffer.alloc(height * (width * 3 + 1));
  for (let row = 0; row < height; row++)
    Buffer.from(rgb.buffer, row * width * 3, width * 3).copy(raw, row * (width * 3 + 1) + 1);
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const size = Buffer.alloc(4);
    size.writeUInt32BE(data.length);
    const check = Buffer.alloc(4);
    check.writeUInt32BE(crc32(body));
    return Buffer.concat([size, body, check]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(raw)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** Invented maps, class scores and query scores: like those of an export, but drawn from the labels alone. */
function lookInside(at, items, weights, put) {
  const random = generator(weights[0] * 1000 + 3);
  const buffer = (numbers) => Buffer.from(Float32Array.from(numbers).buffer);
  const gauss = () => random() + random() + random() - 1.5;
  // A class lies on a circle about its parent, closer for finer levels.
  const place = (path, spread) => {
    let [x, y] = [0, 0];
    path.forEach((id, level) => {
      const angle = id * 2.399 + level;
      const reach = [4, 1.8, 0.8][level] * weights[level];
      [x, y] = [x + reach * Math.cos(angle), y + reach * Math.sin(angle)];
    });
    return [x + spread * gauss(), y + spread * gauss()];
  };
  const paths = [...new Map(items.map(({ path }) => [path.join(), path])).values()].sort(
    (a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2],
  );
  const itemPaths = items.map(({ path }) => path);
  const flat = (paths, spread) => paths.flatMap((path) => place(path, spread));
  const disk = (paths, spread) =>
    paths.flatMap((path) => {
      const [x, y] = place(path, spread);
      const reach = Math.tanh(Math.hypot(x, y) / 4) / Math.hypot(x, y);
      return [x * reach, y * reach];
    });
  // The disk has no class means, as where an export finds too few classes.
  const maps = [
    ["UMAP", "UMAP with 15 neighbours. Near points are alike.", "plane", flat(itemPaths, 0.35), flat(paths, 0)],
    [
      "Poincaré disk",
      "The neighbours of each point, laid out in the hyperbolic plane.",
      "poincare_disk",
      disk(itemPaths, 0.5),
      null,
    ],
  ].map(([name, description, geometry, points, means], number) => {
    const coordinates = `${at}/map-${number}.f32`;
    put(coordinates, buffer(points));
    if (!means) return { name, description, geometry, coordinates };
    const ofMeans = `${at}/class-means-${number}.f32`;
    put(ofMeans, buffer(means));
    const class_means = { description, classes: paths.map((path) => path.at(-1)), coordinates: ofMeans };
    return { name, description, geometry, coordinates, class_means };
  });

  const affinities = [1, 2, 3].map((level) => {
    const rows = [...new Map(paths.map((path) => [path[level - 1], path.slice(0, level)])).values()];
    const score = (a, b) => {
      const shared = a.filter((id, index) => id === b[index]).length / level;
      return 0.1 + 0.7 * shared * weights[0] + 0.2 * Math.cos(a.at(-1) * 3 + b.at(-1) * 3);
    };
    const scores = `${at}/affinity-${level}.f32`;
    put(scores, buffer(rows.flatMap((a) => rows.map((b) => score(a, b)))));
    return { level, classes: rows.map((path) => path.at(-1)), scores };
  });

  const scores = `${at}/query-scores.f32`;
  const column = (metric, level = 0) => ({ metric, level });
  const columns = [column("h_ap"), column("ap", 1), column("ap", 2), column("ap", 3), column("first_shared_level")];
  put(
    scores,
    buffer(
      items.flatMap(({ path }) => {
        const h = Math.min(1, 0.4 + 0.2 * weights[0] + 0.4 * random() - 0.02 * (path[2] % 5));
        return [h, h, h * 0.9, h * 0.8, random() < h ? 3 : Math.floor(random() * 3)];
      }),
    ),
  );
  return { maps, affinities, query_scores: { columns, scores } };
}
