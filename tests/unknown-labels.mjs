// How well scores are estimated when labels are missing: cuts the labels of groceries and of drawn creatures with five
// seeds, and compares the estimates with the scores of the full labels. Writes the table of native-trainer/recipes/tables.
//
//   AKIN_DATA=… node tests/unknown-labels.mjs PROGRAM [FOLDER]
//
// FOLDER keeps the embeddings, so that a second run does not compute them again.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { akin, creatures, deviation, folder, mean, number, readCsv, writeCsv, writeSection, writeTable } from './tables.mjs';

const SHARES = [0.1, 0.3, 0.5];
const SEEDS = [1, 2, 3, 4, 5];
const METRICS = ['h_ap', 'ndcg', 'asi', 'ap', 'map_at_r', 'recall@1', 'recall@10'];

// The test images of a data set: their embeddings by the backbone of the recipe `grocery`, and a CSV file of their labels.
function embed(name, data, levels, splits) {
  const some = readCsv(join(data, 'labels.csv')).filter((row) => splits.includes(row.split));
  const [embeddings, labels] = ['npy', 'labels.csv'].map((ending) => join(folder, `${name}.${ending}`));
  writeCsv(labels, levels, some);
  if (!existsSync(embeddings)) akin(['embed', 'grocery', ...some.map((row) => row.path), '--out', embeddings], data);
  return { name, levels, images: some.length, files: ['--queries', embeddings, '--query-labels', labels] };
}

function evaluate({ files, levels }, cut = []) {
  const args = ['eval', ...files, '--levels', levels.join(','), '--metrics', METRICS.join(','), '--json', ...cut];
  const report = JSON.parse(akin(args));
  return [{ name: 'all levels', ...report.overall }, ...report.levels];
}

const sets = [
  embed('groceries', join(process.env.AKIN_DATA, 'grocery'), ['department', 'kind', 'variety'], ['query', 'gallery']),
  embed('creatures', creatures(), ['order', 'family', 'species'], ['test']),
];

const rows = [];
for (const set of sets) {
  const full = evaluate(set);
  for (const share of SHARES) {
    const cuts = SEEDS.map((seed) => evaluate(set, ['--cut-labels', `${share}`, '--cut-seed', `${seed}`]));
    for (const [place, truth] of full.entries()) {
      // Nothing is missing at the first level.
      if (place === 1) continue;
      for (const metric of METRICS.filter((metric) => metric in truth)) {
        const estimates = cuts.map((cut) => 100 * cut[place][metric]);
        const bounds = cuts.map((cut) => cut[place].open.bounds[metric]);
        rows.push({
          set: set.name,
          share,
          level: truth.name,
          metric,
          full: 100 * truth[metric],
          estimate: mean(estimates),
          deviation: deviation(estimates),
          bias: mean(estimates) - 100 * truth[metric],
          low: 100 * mean(bounds.map(([low]) => low)),
          high: 100 * mean(bounds.map(([, high]) => high)),
          inside: bounds.filter(([low, high]) => low <= truth[metric] && truth[metric] <= high).length,
        });
      }
    }
  }
}

writeTable('unknown-labels.csv', rows);

const inside = rows.reduce((sum, row) => sum + row.inside, 0);
const worst = (share) => Math.max(...rows.filter((row) => row.share === share).map((row) => Math.abs(row.bias)));
const lines = rows.map(
  (row) =>
    `| ${row.set} | ${Math.round(100 * row.share)} % | ${row.level} | \`${row.metric}\` | ${number(row.full)} | ${number(row.estimate)} ± ${number(row.deviation)} | ${number(row.bias)} | ${number(row.low)} … ${number(row.high)} | ${row.inside} of ${SEEDS.length} |`,
);
writeSection(
  'unknown-labels.md',
  '## Scores estimated from labels with holes',
  `The test images of groceries (${sets[0].images}) and of drawn creatures (${sets[1].images}) rank each other by the embeddings of SqueezeNet, without training.
A share of the labels is cut, each at a level drawn at random, with five seeds: \`akin eval --cut-labels SHARE --cut-seed SEED\`.
The estimate is a mean of five seeds with its deviation, the bias its difference from the score of the full labels, and the bounds are means of five.
The score of the full labels is within the bounds in ${inside} of ${rows.length * SEEDS.length} cases.
The largest bias is ${SHARES.map((share) => `${number(worst(share))} points with ${Math.round(100 * share)} % cut`).join(', ')}.

| images | cut | level | metric | full labels | estimate | bias | bounds | within |
|---|---|---|---|---|---|---|---|---|
${lines.join('\n')}

Made by \`node tests/unknown-labels.mjs PROGRAM\`; all numbers are in [unknown-labels.csv](unknown-labels.csv).
`,
);
