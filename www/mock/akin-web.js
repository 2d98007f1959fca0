// A stand-in for the wasm engine, for work on the page alone: the same interface with toy embeddings.
// `self.akinMock` or ?fail= in the module's address chooses a failure: webgpu | parity | panic | bundle.

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const failure = (code, message, hint) => ({ code, message, hint });
const scenario = new URLSearchParams(new URL(import.meta.url).search).get("fail") ?? self.akinMock ?? "";

let science = null;

export default async function init() {
  science = await import("./akin-science.js");
  await science.default();
  return { memory: new WebAssembly.Memory({ initial: 1 }), __wasm_call_ctors() {} };
}

/** A number between 0 and 1 that depends only on the arguments. */
function noise(...parts) {
  let hash = 2166136261;
  for (const part of parts) hash = Math.imul(hash ^ (part + 0x9e3779b9), 16777619) ^ (hash >>> 13);
  return ((hash ^ (hash >>> 15)) >>> 0) / 2 ** 32;
}

export class Engine {
  static async create(backend) {
    if (backend === "webgpu" && scenario === "webgpu") throw failure("device", "the adapter was lost", "use the CPU");
    const adapter = backend === "webgpu" ? await navigator.gpu?.requestAdapter() : null;
    if (backend === "webgpu" && !adapter)
      throw failure("device", "the browser found no graphics adapter for WebGPU", "use the CPU");
    const engine = new Engine();
    engine.backend = backend;
    engine.encoders = new Map();
    return engine;
  }

  adapter() {
    if (this.backend === "cpu") return null;
    return { name: "mock", software: true, largest_buffer: 2 ** 30, half_precision: false };
  }

  open(json) {
    if (scenario === "bundle")
      throw failure(
        "bundle",
        "this bundle needs a newer akin: bundle.json has version 2, and this akin reads version 1",
        "update akin, or write the bundle again with this version",
      );
    this.manifest = JSON.parse(new TextDecoder().decode(json));
    this.own = null;
  }

  load_labels(bytes) {
    this.labels = new Uint32Array(bytes.slice().buffer);
    this.depth = this.manifest.taxonomy.levels.length;
  }

  load_encoder(index, _weights, gallery) {
    const dimension = this.manifest.encoders[index].dimension;
    this.encoders.set(index, { gallery: new Float32Array(gallery.slice().buffer), dimension });
  }

  check_parity() {
    const passed = !(scenario === "parity" && this.backend === "webgpu");
    return { pictures: 1, cosine: passed ? 1 : 0.31, bound: 0.9999, passed };
  }

  verify() {}

  async embed(encoder, image) {
    if (scenario === "panic" && this.backend === "webgpu") {
      queueMicrotask(() => {
        throw new WebAssembly.RuntimeError("unreachable");
      });
      await new Promise(() => {});
    }
    let bitmap;
    try {
      bitmap = await createImageBitmap(new Blob([image]));
    } catch {
      throw failure(
        "image",
        "the image could not be read: it ends in the middle of its data",
        "save it again as JPEG, PNG or WebP",
      );
    }
    await pause(this.backend === "cpu" ? 90 : 25);
    // A picture of a few pixels stands for one that is unlike everything in the gallery.
    if (bitmap.width < 8) {
      const { dimension } = this.encoders.get(encoder);
      const embedding = Array.from({ length: dimension }, (_, index) => noise(index, image.length) - 0.5);
      return { embedding, decode_ms: 0.4, embed_ms: 24.8 };
    }
    const item = Math.floor(noise(bitmap.width, bitmap.height, image.length) * this.manifest.gallery.count);
    const embedding = Array.from(
      this.item_embedding(encoder, item),
      (value, index) => value + 0.05 * (noise(index, image.length) - 0.5),
    );
    return { embedding, decode_ms: 6.3, embed_ms: this.backend === "cpu" ? 91.2 : 24.8 };
  }

  item_embedding(encoder, item) {
    const { gallery, dimension } = this.encoders.get(encoder);
    return gallery.slice(item * dimension, (item + 1) * dimension);
  }

  is_hash(encoder) {
    return this.manifest.encoders[encoder].report?.config.similarity === "hamming";
  }

  /** Dark parts of a picture stand for those that the encoder sees. */
  async look(encoder, query, item) {
    await pause(60);
    const exact = !this.is_hash(encoder);
    const [q, x] = [await darkness(query), await darkness(item)];
    const pairs = q.flatMap((a, p) =>
      x.map((b, r) => a * b * (1 + noise(p, r)) - 0.03 * noise(p, 3) ** 2 * (1 - a) * noise(r, 7)),
    );
    const total = pairs.reduce((sum, value) => sum + value, 0);
    const score = exact ? 0.734 : -4;
    const scaled = pairs.map((value) => (value / total) * score);
    const sum = (pick) => q.map((_, cell) => scaled.reduce((sum, v, at) => sum + (pick(at) === cell ? v : 0), 0));
    const side = (values, embedding) => ({
      rows: GRID,
      columns: GRID,
      region: [0.06, 0.06, 0.88, 0.88],
      values: exact ? values : null,
      embedding,
    });
    return {
      score,
      exact,
      query: side(
        sum((at) => Math.floor(at / q.length)),
        q,
      ),
      item: side(
        sum((at) => at % q.length),
        x,
      ),
      pairs: exact ? scaled : null,
    };
  }

  async occlude(_encoder, _image, embedding, _other, row) {
    await pause(20);
    return Float32Array.from({ length: GRID }, (_, column) => Math.round(6 * embedding[row * GRID + column] - 0.8));
  }

  start_own_gallery(levels, rows) {
    const depth = levels.length;
    const classes = levels.map(() => []);
    const parents = levels.map(() => []);
    const labels = [];
    rows.forEach((given, at) => {
      const level = at % Math.max(1, depth);
      const name = given || classes[level - 1][labels.at(-1)];
      const parent = level === 0 ? null : labels.at(-1);
      let id = classes[level].findIndex((other, index) => other === name && (parents[level][index] ?? null) === parent);
      if (id < 0) {
        id = classes[level].push(name) - 1;
        if (parent !== null) parents[level].push(parent);
      }
      labels.push(id);
    });
    this.own = { depth, labels: Uint32Array.from(labels), encoders: new Map() };
    return { classes, parents, labels };
  }

  embed_own_gallery(encoder, embeddings) {
    this.own.encoders.set(encoder, { gallery: embeddings, dimension: this.manifest.encoders[encoder].dimension });
  }

  rank(encoder, k, given, item, labels, fromOwn) {
    const from = fromOwn ? this.own : this;
    const { gallery, dimension } = from.encoders.get(encoder);
    const { depth } = from;
    const embedding = item === undefined ? given : gallery.slice(item * dimension, (item + 1) * dimension);
    const row = (index) => from.labels.subarray(index * depth, (index + 1) * depth);
    const own = labels ?? (item === undefined || depth === 0 ? null : row(item));
    const length = (vector) => Math.hypot(...vector);
    const isHash = this.is_hash(encoder);
    const text = (vector) => [...vector].map((value) => (value > 0 ? "1" : "0")).join("");
    const order = [];
    for (let other = 0; other < gallery.length / dimension; other++) {
      if (other === item) continue;
      const vector = gallery.subarray(other * dimension, (other + 1) * dimension);
      const dot = vector.reduce((sum, value, index) => sum + value * embedding[index], 0);
      const differ = vector.reduce((sum, value, index) => sum + (value > 0 !== embedding[index] > 0), 0);
      order.push({ item: other, score: isHash ? -differ : dot / (length(vector) * length(embedding)) });
    }
    order.sort((a, b) => b.score - a.score || a.item - b.item);
    for (const result of order) result.shared_level = result.may_share = own && shared(own, row(result.item));
    return {
      results: order.slice(0, k),
      metrics:
        own &&
        metrics(
          order.map((result) => result.shared_level),
          depth,
        ),
      votes: own || depth === 0 ? null : votes(order.slice(0, 10), row, depth),
      answers: own || depth === 0 || isHash ? null : answers(order.slice(0, 10), row, depth),
      likeness: order[0] && !isHash ? { best: order[0].score, unlike_below: 0.8, unlike: order[0].score < 0.8 } : null,
      codes: isHash
        ? {
            query: text(embedding),
            results: order
              .slice(0, k)
              .map(({ item }) => text(gallery.subarray(item * dimension, (item + 1) * dimension))),
          }
        : null,
    };
  }
}

const GRID = 6;

/** How dark each cell of a picture is, 0 to 1. */
async function darkness(bytes) {
  const bitmap = await createImageBitmap(new Blob([bytes]));
  const context = new OffscreenCanvas(GRID, GRID).getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, GRID, GRID);
  const { data } = context.getImageData(0, 0, GRID, GRID);
  return Array.from({ length: GRID * GRID }, (_, cell) => 1 - data[4 * cell + 1] / 255);
}

function shared(a, b) {
  for (let level = a.length; level > 0; level--) if (a[level - 1] === b[level - 1]) return level;
  return 0;
}

const METRICS = [
  ["h_ap", "H-AP", "hierarchical average precision", false],
  ["ndcg", "NDCG", "normalised discounted cumulative gain", false],
  ["asi", "ASI", "average set intersection with the ideal list", false],
  ["ap", "AP", "average precision", true],
  ["recall@1", "R@1", "recall at 1", true],
];

/** The real scores of the toy ranking. */
function metrics(levels, depth) {
  const settings = { relevance: { kind: "hierarchical_ap", alpha: 1 }, ties: "stable", count_query: false };
  const { h_ap, ndcg, asi, ap, recall_at_1 } = science.score({ depth, levels }, settings);
  return {
    described: METRICS.map(([name, label, title, per_level]) => ({
      name,
      label,
      title,
      unit: "share",
      greater_is_better: true,
      per_level,
    })),
    overall: { h_ap, ndcg, asi },
    levels: ap.map((value, index) => ({ ap: value, "recall@1": recall_at_1[index] })),
  };
}

/** Answers at four promises: a share of the votes stands for a certainty. */
function answers(nearest, row, depth) {
  const cast = votes(nearest, row, depth);
  let above = 1;
  const levels = cast.map(({ level, class: id, share }) => ({
    level,
    class: id,
    certainty: (above = Math.min(above, share)),
  }));
  return [0.8, 0.9, 0.95, 0.99].map((promise) => {
    const reached = levels.filter(({ certainty }) => certainty >= promise - 0.3).length;
    const answer = { levels, reached, unlike: false, possible: true };
    const speakers = levels.map((one) => nearest.filter(({ item }) => row(item)[one.level - 1] === one.class).length);
    return { promise, answer, probable: levels[reached] ?? null, speakers, voters: nearest.length };
  });
}

function votes(nearest, row, depth) {
  return Array.from({ length: depth }, (_, index) => {
    const cast = new Map();
    let total = 0;
    for (const { item, score } of nearest) {
      const id = row(item)[index];
      cast.set(id, (cast.get(id) ?? 0) + score);
      total += score;
    }
    const [id, share] = [...cast].sort((a, b) => b[1] - a[1])[0];
    return { level: index + 1, class: id, share: share / total };
  });
}
