// What training loses when labels are missing: trains on groceries and on drawn creatures with part of the training's labels
// cut, in three ways, and compares the scores of the full test labels with those of a training on full labels. Writes the
// table of native-trainer/recipes/tables.
//
//   AKIN_DATA=… node tests/cut-training.mjs PROGRAM [FOLDER]
//
// FOLDER keeps the runs, so that a second call trains only those that are not there.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { akin, creatures, deviation, folder, mean, number, readCsv, writeCsv, writeSection, writeTable } from './tables.mjs';

const SHARES = [0.1, 0.3, 0.5];
const SEEDS = [1, 2, 3, 4, 5];
// What becomes of an image with a hole: it is left out, gets the label above, or its unknown labels have no part.
const WAYS = { dropped: 'refuse', parent: 'parent', unknown: 'unknown' };
const LOSSES = ['happier', 'sum_norm_softmax'];
// A head on the features of SqueezeNet, which are computed once. For ΣNSM with the settings that `grocery-head` chose.
const head = (name) => ({
  recipe: 'grocery-rank-losses',
  settings: [`model.feature_cache=${join(folder, `${name}.features`)}`],
  sum_norm_softmax: ['loss.loss.temperature=0.05', 'optimizer.lr_head=0.03', 'optimizer.lr_proxies=1.0'],
});
// A small network from random weights, on pictures of half the size.
const network = { recipe: 'biomorphs', settings: ['model.preprocessing.crop=32', 'run.steps=200'] };
const groceries = { data: join(process.env.AKIN_DATA, 'grocery'), levels: ['department', 'kind', 'variety'] };
const drawn = { data: creatures(), levels: ['order', 'family', 'species'] };
const SETS = [
  { name: 'groceries', title: 'groceries (head)', losses: LOSSES, ...groceries, ...head('groceries') },
  { name: 'creatures', title: 'creatures (head)', losses: LOSSES, ...drawn, ...head('creatures') },
  { name: 'network', title: 'creatures (network)', losses: ['happier'], ...drawn, ...network },
];

// Numbers from 0 to 1 by a seed: mulberry32.
function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// The rows with a share of the training's labels known only down to a level drawn from 1 … L − 1, as `akin eval --cut-labels`.
function cut(rows, levels, share, seed) {
  const next = random(seed);
  return rows.map((row) => {
    const [hole, known] = [next() < share, 1 + Math.floor(next() * (levels.length - 1))];
    if (row.split !== 'train' || !hole) return row;
    return { ...row, ...Object.fromEntries(levels.slice(known).map((level) => [level, ''])) };
  });
}

// Trains, and returns the report.
function train(set, loss, share, way, seed) {
  const run = join(folder, 'runs', `${set.name}-${loss}-${share}-${way}-${seed}`);
  const report = join(run, 'report.json');
  if (!existsSync(report)) {
    const rows = cut(readCsv(join(set.data, 'labels.csv')), set.levels, share, seed);
    const used = way === 'dropped' ? rows.filter((row) => set.levels.every((level) => row[level])) : rows;
    const labels = join(folder, 'labels.csv');
    writeCsv(labels, ['path', ...set.levels, 'split'], used);
    const settings = [
      `data.path=${labels}`,
      `data.images=${set.data}`,
      `data.levels=${JSON.stringify(set.levels)}`,
      `data.missing=${WAYS[way] ?? 'refuse'}`,
      `loss.kind=${loss}`,
      ...set.settings,
      ...(set[loss] ?? []),
    ];
    akin(['train', set.recipe, '--seed', `${seed}`, '--out', run, '--overwrite', ...settings.flatMap((setting) => ['--set', setting])]);
  }
  return JSON.parse(readFileSync(report, 'utf8'));
}

const SCORES = {
  h_ap: (report) => report.overall.h_ap,
  ap: (report) => report.levels.at(-1).ap,
  'recall@1': (report) => report.levels.at(-1)['recall@1'],
};
// The scores of all seeds, in percent.
function scores(...training) {
  const reports = SEEDS.map((seed) => train(...training, seed));
  return Object.fromEntries(Object.entries(SCORES).map(([name, of]) => [name, reports.map((report) => 100 * of(report))]));
}

const rows = [];
for (const set of SETS) {
  for (const loss of set.losses) {
    const full = scores(set, loss, 0, 'full');
    const add = (share, way, some) => {
      const row = { set: set.title, loss, share, way };
      for (const name of Object.keys(SCORES)) {
        row[name] = mean(some[name]);
        row[`${name}_deviation`] = deviation(some[name]);
        const lost = some[name].map((value, seed) => full[name][seed] - value);
        row[`${name}_lost`] = mean(lost);
        row[`${name}_lost_deviation`] = deviation(lost);
      }
      rows.push(row);
    };
    add(0, 'full', full);
    for (const share of SHARES) for (const way of Object.keys(WAYS)) add(share, way, scores(set, loss, share, way));
  }
}
writeTable('unknown-labels-training.csv', rows);

const LABELS = { full: 'full labels', dropped: 'rows dropped', parent: 'parents copied', unknown: 'unknown' };
const TITLES = { happier: 'HAPPIER', sum_norm_softmax: 'ΣNSM' };
const score = (row, name) => `${number(row[name])} ± ${number(row[`${name}_deviation`])}`;
const lines = rows.map((row) => {
  const lost = row.share ? score(row, 'h_ap_lost') : '–';
  const scores = [score(row, 'h_ap'), lost, score(row, 'ap'), score(row, 'recall@1')];
  return `| ${[row.set, TITLES[row.loss], `${Math.round(100 * row.share)} %`, LABELS[row.way], ...scores].join(' | ')} |`;
});
writeSection(
  'unknown-labels.md',
  '## Training on labels with holes',
  `Trained on labels of which a share is cut, each at a level drawn at random, and evaluated on the full test labels; no class of the test is in the training.
Rows with a hole are dropped, get the label above (\`data.missing = "parent"\`), or stay unknown (\`data.missing = "unknown"\`, the default).
The seed of a training is also that of the cut.
*Head*: one on frozen features of SqueezeNet, the recipe \`grocery-rank-losses\`; for ΣNSM with the settings that \`grocery-head\` chose.
*Network*: the recipe \`biomorphs\`, with 200 steps on pictures of 32 pixels.
Each number is a mean of five seeds with its deviation, in percent; *lost* is the difference of H-AP from the training on full labels with the same seed, AP and R@1 are those of the finest level.
Measured on two cores of an AMD EPYC, 2026-11-25.

| images (model) | loss | cut | holes | H-AP | lost | AP | R@1 |
|---|---|--:|---|--:|--:|--:|--:|
${lines.join('\n')}

Made by \`node tests/cut-training.mjs PROGRAM\`; all numbers are in [unknown-labels-training.csv](unknown-labels-training.csv).
`,
);
