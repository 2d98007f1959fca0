// Calls akin with hundreds of bad inputs: every command, every option that takes a value, every key of a config, and
// damaged files.
//
//   node tests/bad-inputs.mjs AKIN
//
// Each call has to fail with a message and a hint, without a panic, in time, and without leaving anything behind.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const akin = path.resolve(process.argv[2] ?? 'target/debug/akin');
const TIME_LIMIT = 60_000;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'akin-bad-inputs-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));

const run = (args) => spawnSync(akin, args, { cwd: folder, encoding: 'utf8', timeout: TIME_LIMIT, input: '' });
const write = (name, content) => {
  fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
  fs.writeFileSync(path.join(folder, name), content);
};
const read = (name) => fs.readFileSync(path.join(folder, name));
const listing = () => fs.readdirSync(folder, { recursive: true }).sort().join('\n');

// --- Calls that succeed, to be spoilt --------------------------------------------------------------

const CONFIG = `
run = { steps = 1, device = "cpu" }
data = { kind = "csv", path = "data/labels.csv", levels = ["order", "family", "species"] }
model = { backbone = { kind = "small_resnet", width = 4 }, head = { dimension = 4 }, preprocessing = { name = "imagenet", crop = 16 } }
loss = { kind = "happier" }
sampler = { classes_per_batch = 2, images_per_class = 2 }
`;
const RANGE = "'loss.lambda'={min=0.0,max=1.0}";

function expectSuccess(...args) {
  const { status, stderr } = run(args);
  if (status !== 0) throw new Error(`akin ${args.join(' ')}: ${stderr}`);
}

write('tiny.toml', CONFIG);
write('file', 'a file');
write('no-photos/notes.txt', '');
write('loose/1.png', '');
for (const name of ['few/a/1.png', 'few/a/2.png', 'few/b/1.png']) write(name, '');
write('unfinished/config.toml', CONFIG);
expectSuccess('biomorphs', 'data', '--branching', '2,2,3', '--images-per-class', '2', '--side', '16');
expectSuccess('train', 'tiny.toml', '--out', 'run');
expectSuccess('export', 'run', '--out', 'bundle', '--no-maps', '--thumbnail', '16');
expectSuccess('embed', 'run', 'data/images', '--out', 'e.npy');
expectSuccess('index', 'run', 'data/images', '--out', 'pictures');
const labels = read('e.csv').toString().trim().split('\n').slice(1)
  .map((image) => [image, ...image.split('/').slice(2, 5)].join(','));
write('e-labels.csv', ['path,order,family,species', ...labels].join('\n') + '\n');

fs.copyFileSync(path.join(folder, labels[0].split(',')[0]), path.join(folder, 'picture.png'));

/** Weights of SqueezeNet, all zero, with a layer that can be the head, as a file of safetensors. */
function zeroWeights() {
  const { weights } = JSON.parse(fs.readFileSync(new URL('../core/tests/backbones/squeezenet.json', import.meta.url)));
  const tensors = {};
  let end = 0;
  for (const [name, shape] of Object.entries({ ...weights, 'head.weight': [8, 512] })) {
    const start = end;
    end += 4 * shape.reduce((count, size) => count * size, 1);
    tensors[name] = { dtype: 'F32', shape, data_offsets: [start, end] };
  }
  const text = JSON.stringify(tensors);
  const length = Buffer.alloc(8);
  length.writeUInt32LE(text.length);
  return Buffer.concat([length, Buffer.from(text), Buffer.alloc(end)]);
}

write('weights.safetensors', zeroWeights());

const FILES = ['eval', '--queries', 'e.npy', '--query-labels', 'e-labels.csv', '--levels', 'order,family,species'];
const GALLERY = [...FILES, '--gallery', 'e.npy', '--gallery-labels', 'e-labels.csv', '--path-column', 'path'];
const EXPORT = ['export', '--embeddings', 'e.npy', '--labels', 'e-labels.csv', '--levels', 'order,family,species', '--path-column', 'path', '--no-maps', '--out', 'new'];
const GOOD = {
  init: ['init', 'data', '--out', 'new.toml'],
  'config check': ['config', 'check', 'tiny.toml'],
  'config show': ['config', 'show', 'tiny.toml'],
  report: ['report', 'run', '--out', 'new.html'],
  index: ['index', 'run', 'data/images', '--out', 'new'],
  'index of a gallery': ['index', 'pictures', '--add', 'picture.png'],
  search: ['search', 'bundle', 'picture.png'],
  'search of a gallery': ['search', 'pictures', '--near', '0'],
  'search files': ['search', 'pictures', '--embeddings', 'e.npy'],
  duplicates: ['duplicates', 'pictures'],
  classify: ['classify', 'bundle', 'picture.png'],
  doctor: ['doctor'],
  completions: ['completions', 'bash'],
  man: ['man', 'new'],
  train: ['train', 'tiny.toml', '--out', 'new'],
  import: ['import', 'weights.safetensors', '--out', 'new'],
  resume: ['resume', 'nowhere'],
  compare: ['compare', 'tiny.toml', '--out', 'new'],
  tune: ['tune', 'tiny.toml', '--out', 'new', '--set', `tune.ranges={${RANGE}}`],
  eval: ['eval', 'run'],
  'eval files': GALLERY,
  embed: ['embed', 'run', 'data/images', '--out', 'new.npy'],
  'data check': ['data', 'check', 'tiny.toml'],
  'data verify': ['data', 'verify', 'tiny.toml'],
  'data stats': ['data', 'stats', 'tiny.toml'],
  'data fetch': ['data', 'fetch', 'aircraft', '--yes', '--from', 'http://127.0.0.1:9'],
  export: ['export', 'run', '--out', 'new'],
  'export files': EXPORT,
  serve: ['serve', 'nowhere'],
  biomorphs: ['biomorphs', 'new'],
  demo: ['demo', '--out', 'new', '--no-serve'],
  verify: ['verify', 'nowhere'],
  'bench loss': ['bench', 'loss', '--losses', 'contrastive', '--batch', '8', '--dimension', '4'],
  'bench eval': ['bench', 'eval', '--items', '8', '--dimension', '4'],
  'bench loader': ['bench', 'loader', 'tiny.toml', '--images', '8'],
  'bench train': ['bench', 'train', '--backbones', 'small_resnet', '--batch', '2', '--side', '32', '--steps', '1'],
  page: ['page'],
  'list losses': ['list', 'losses'],
  'list miners': ['list', 'miners'],
  'list datasets': ['list', 'datasets'],
  'list recipes': ['list', 'recipes'],
  recipes: ['recipes'],
};
for (const files of [FILES, GALLERY]) expectSuccess(...files);

// --- Options ---------------------------------------------------------------------------------------

const NUMBERS = ['x', '-1', '1.5', '99999999999999999999', ''];
const MISSING = ['nowhere', 'nowhere/at/all'];
/// Bad values of each option that takes one.
const BAD = {
  '--set': ['nonsense', '=1', 'run.steps=', 'run.nonsense=1', 'nonsense.key=1', 'run.steps=[', 'data.levels=[]'],
  '--promise': ['x', '49', '100', '-1', 'nan', ''],
  '--out': ['file/below', 'file', ''],
  '--backbone': ['x', ''],
  '--head': ['nowhere', ''],
  // A folder for the hub needs a licence, and no package of PyTorch has the backbone of this run.
  '--to': ['x', 'hub', 'pytorch', ''],
  '--log': ['x', ''],
  '--weights': ['nowhere', 'data', ''],
  '--onnxruntime': ['nowhere', 'file', ''],
  '--onnx': ['nowhere.onnx', 'data', 'file', 'picture.png', ''],
  '--count': [...NUMBERS, '0'],
  '--encoder': ['x', ''],
  '--seed': NUMBERS,
  '--device': ['x', ''],
  '--progress': ['x', ''],
  '--near': ['nowhere.png', '-1', '99999', '99999999999999999999', ''],
  '--within': ['nowhere', 'a/b/c', '/', ''],
  '--not': ['nowhere', 'a/b/c', '/', ''],
  '--group-by': ['nowhere', ''],
  '--at-least': ['x', '0', '-1', '1.1', 'nan', ''],
  '--add': ['nowhere', 'file', 'no-photos', ''],
  '--remove': ['nowhere', ''],
  '--relabel': ['nowhere.csv', 'e.npy', 'data', 'file', ''],
  '--reembed': ['nowhere', 'data', 'file', 'pictures', ''],
  '--collect': ['nowhere', 'data', 'file', 'bundle', ''],
  '--numbers': ['x', 'int4', ''],
  '--which': ['x', ''],
  '--against': MISSING,
  '--queries': ['nowhere.npy', 'e-labels.csv', 'data', 'file'],
  '--query-labels': ['nowhere.csv', 'e.npy', 'data', 'file'],
  '--gallery': ['nowhere.npy', 'e-labels.csv', 'data'],
  '--gallery-labels': ['nowhere.csv', 'e.npy', 'data'],
  '--path-column': ['nowhere', 'order', ''],
  '--group-column': ['nowhere', ''],
  '--label-separator': [''],
  '--parents': ['nowhere.csv', 'data', 'e.npy', 'e-labels.csv'],
  '--relevance-matrix': ['nowhere.csv', 'data', 'e.npy', 'e-labels.csv'],
  '--missing': ['x', 'fill', ''],
  '--cut-labels': ['x', '-0.1', '1.1', 'nan', ''],
  '--cut-seed': NUMBERS,
  '--by-class': ['nowhere', ''],
  '--embedding-column': ['nowhere', ''],
  '--embeddings': ['nowhere.npy', 'e-labels.csv', 'data'],
  '--junk-column': ['nowhere', 'path', ''],
  '--labels': ['nowhere.csv', 'e.npy', 'data', 'file', ''],
  '--levels': ['nowhere', 'species,family,order', 'order,order', ''],
  '--metrics': ['x', 'recall', 'recall@0', 'recall@-1', 'recall@x', 'ap,ap', 'mrr@10', ''],
  '--bootstrap': [...NUMBERS, '4294967295'],
  '--decomposability-gap': [...NUMBERS, '0'],
  '--hyperbolicity': [...NUMBERS, '0', '3', '5001'],
  '--memory': NUMBERS,
  '--shard': ['x', '3', '0/4', '5/4', '1/0', '-1/4', ''],
  '--merge': [...MISSING, 'e.npy', 'data', 'run/report.json'],
  '--similarity': ['x', ''],
  '--ties': ['x', ''],
  '--relevance': ['x', 'plain:x', 'plain:-1', 'weighted_ap:1', 'weighted_ap:nan,1,1', ''],
  '--per-query': ['nowhere/rows.csv', 'e.npy', 'e-labels.csv', 'file', 'run/config.toml'],
  '--curves': ['nowhere/curves.csv', 'e.npy', 'e-labels.csv', 'file', 'run/config.toml'],
  '--paired': ['x', ''],
  '--paper': ['x', ''],
  '--site': ['data', 'file'],
  '--with': MISSING,
  '--page': ['nowhere', 'file'], '--onnxruntime': ['nowhere', 'file'],
  '--notice': ['nowhere', 'data'],
  '--thumbnail': [...NUMBERS, '0', '4'],
  '--maps': ['x', ''],
  '--port': ['x', '-1', '70000', ''],
  '--page-pictures': [...NUMBERS, '0'],
  '--host': ['a/b', 'a b', ''],
  '--losses': ['x', ''],
  '--backbones': ['x', ''],
  '--steps': [...NUMBERS, '0'],
  '--seeds': ['x', '-1', ''],
  '--cell': NUMBERS,
  '--trials': [...NUMBERS, '0', '99999'],
  '--format': ['x', ''],
  '--branching': ['x', '0', '-1', '2,,2', '99999,99999', ''],
  '--images-per-class': [...NUMBERS, '0'],
  '--side': [...NUMBERS, '0', '100000'],
  '--held-out': ['x', '-1', '2', 'nan', ''],
  '--show': ['x', ''],
  '--data': ['nowhere.toml', 'file', 'data', ''],
  '--sheet': ['nowhere/x.png', 'file', 'tiny.toml', ''],
  '--svg': ['nowhere/x.svg', 'tiny.toml', 'file', ''],
  '--only': ['x', ''],
  '--batch': [...NUMBERS, '0', '2,,2'],
  '--dimension': [...NUMBERS, '0'],
  '--tensors-up-to': NUMBERS,
  '--items': [...NUMBERS, '0', '2,,2'],
  '--images': [...NUMBERS, '0'],
  '--naive-up-to': NUMBERS,
  '--png': ['tiny.toml', 'file', 'data', ''],
  '--plot': ['nowhere/x.svg', 'tiny.toml', 'file', ''],
  '--from': ['x', 'ftp://127.0.0.1', 'http://', 'http://127.0.0.1:9', ''],
};
/// Values that are fine for one command, and options whose text is free.
const FINE = new Set(['--title', '--description', '--licence']);
const isFine = (command, option, value) =>
  (['--page', '--host'].includes(option) && command === 'demo') || // nothing is served
  (option === '--svg' && command === 'report' && value === 'nowhere/x.svg') || // a folder, which it makes
  (option === '--set' && command.startsWith('data ') && /^(run|nonsense)\./.test(value)) || // it reads only [data]
  (option === '--path-column' && !command.endsWith(' files')) ||
  (option === '--levels' && command === 'index' && value === 'species,family,order') || // names are free there
  (option === '--levels' && !['eval files', 'export files', 'init', 'index'].includes(command));

const cases = [];
const add = (name, args, prepare) => cases.push({ name, args, prepare });

for (const [command, good] of Object.entries(GOOD)) {
  const words = command.replace(/ (files|of a gallery)$/, '').split(' ');
  const help = run([...words, '--help']).stdout;
  const options = [...help.matchAll(/^ +(?:-\w, )?(--[a-z-]+) <\S+>/gm)].map((match) => match[1]);
  for (const option of options.filter((option) => !FINE.has(option))) {
    if (!BAD[option]) throw new Error(`${option} of akin ${command} has no bad value in this script`);
    for (const value of BAD[option].filter((value) => !isFine(command, option, value))) {
      const at = good.indexOf(option);
      const args = at < 0 ? [...good, option, value] : good.with(at + 1, value);
      add(`akin ${command} ${option} ${JSON.stringify(value)}`, args);
    }
  }
  add(`akin ${command} with an unknown option`, [...good, '--nonsense']);
  if (good.length > words.length && !good[words.length].startsWith('--')) {
    if (!['biomorphs', 'man'].includes(command)) add(`akin ${command} on nothing`, good.with(words.length, 'nowhere'));
    add(`akin ${command} on an empty name`, good.with(words.length, ''));
  }
}
for (const words of [[], ['nonsense'], ['data'], ['config'], ['list'], ['list', 'nonsense']]) {
  add(`akin ${words.join(' ')}`, words);
}

// --- Configs ---------------------------------------------------------------------------------------

/// The keys of a TOML file that akin wrote, with their values.
function* keys(toml) {
  let section = '';
  for (const line of toml.split('\n')) {
    const header = line.match(/^\[([\w.]+)\]$/);
    const pair = line.match(/^(\w+) = (.*)$/);
    if (header) section = header[1];
    if (pair) yield [section ? `${section}.${pair[1]}` : pair[1], pair[2]];
  }
}

for (const [key, value] of keys(read('run/config.toml').toString())) {
  const isNumber = /^-?[\d.]/.test(value);
  const wrong = ['[[1]]', '{ nonsense = 1 }', ...(isNumber ? ["'x'", 'nan', 'true'] : ['1.5'])];
  for (const bad of wrong) add(`the config with ${key}=${bad}`, [...GOOD.train, '--set', `${key}=${bad}`]);
}
for (const section of ['run', 'data', 'split', 'model', 'loss', 'sampler', 'augment', 'optimizer', 'schedule', 'eval']) {
  add(`the config with an unknown key in ${section}`, [...GOOD.train, '--set', `${section}.nonsense=1`]);
}
for (const set of [
  'sampler.kind=pairs', 'sampler.batch_size=-4', 'sampler.batches_per_pair=x', 'sampler.level=genus', 'sampler.level=3',
  "sampler={kind='random',classes_per_batch=0}", "sampler={kind='random',batch_size=0}", "sampler={kind='random',batch_size=9999}",
  "sampler={kind='class_pairs',classes_per_batch=3}", "sampler={kind='class_pairs',level='species'}",
  "sampler={kind='class_pairs',batches_per_pair=0}", "sampler={kind='class_pairs',batches_per_pair=9223372036854775807}",
  "sampler={level='order',classes_per_batch=99}", "sampler={kind='whole_set',batch_size=4}",
  'augment.resize=0', 'augment.squeeze=5000', 'augment={resize=32,squeeze=32}', 'augment.crop=corner', "augment={crop='side'}",
  'augment.crop_side=[1, 2]', "augment={crop='side',crop_side=[2, 1]}", "augment={crop='position'}",
  "augment={crop='position',resize=8}", 'augment={resize=32,crop_ratio=[0.1, 9]}',
  "model.preprocessing={name='imagenet',squeeze='yes'}", 'split.train_is_gallery=1', 'split.protocol=levels',
  "data={kind='dyml_animal',path='x',benchmark='fine',difficulty='easy'}",
]) {
  add(`the config with ${set}`, [...GOOD.train, '--set', set]);
}
for (const set of [
  'tune.ranges={}', "tune.ranges={'loss.nonsense'={min=0.0,max=1.0}}", "tune.ranges={'nonsense.key'={min=0.0,max=1.0}}",
  "tune.ranges={'run.seed'={min=0,max=1}}", "tune.ranges={'loss.lambda'={}}", "tune.ranges={'loss.lambda'={min=0.5}}",
  "tune.ranges={'loss.lambda'={min=1.0,max=0.0}}", "tune.ranges={'loss.lambda'={min=0.0,max=1.0,scale='log'}}",
  "tune.ranges={'loss.lambda'={min=0.0,max=1.0,scale='x'}}", "tune.ranges={'loss.lambda'={min=0.0,max=inf}}",
  "tune.ranges={'loss.lambda'={min=nan,max=1.0}}", "tune.ranges={'loss.lambda'={min='a',max='b'}}", "tune.ranges={'loss.lambda'={values=[]}}",
  "tune.ranges={'loss.lambda'={values=['x']}}", "tune.ranges={'loss.lambda'={values=[0.1],min=0.0}}", "tune.ranges={'loss.lambda'=[0.0,1.0]}",
  "tune.ranges={'loss.lambda'={min=0.5,max=2.0}}", 'tune.ranges.loss.lambda={min=0.0,max=1.0}', 'tune.ranges=1', 'tune={}',
]) {
  add(`the tuning with ${set}`, ['tune', 'tiny.toml', '--out', 'new', '--set', set]);
}
for (const set of ['folds=1', 'folds=99', 'folds=x', 'trials=0', 'trials=501', 'reproductions=9999', 'search=x', 'metric=x', 'seed=-1', 'nonsense=1']) {
  add(`the tuning with tune.${set}`, [...GOOD.tune, '--set', `tune.${set}`]);
}
for (const set of ['split.validation_fraction=0.5', 'split.fold={number=1,of=2}', 'split.protocol=dyml', 'run.seed=9223372036854775807']) {
  add(`the tuning with ${set}`, [...GOOD.tune, '--set', set]);
}
for (const fold of ['{number=0,of=2}', '{number=3,of=2}', '{number=1,of=1}', '{number=1,of=99}', '{number=1}', '1', '{number=1,of=2,more=1}']) {
  add(`the config with split.fold=${fold}`, [...GOOD.train, '--set', `split.fold=${fold}`]);
}
add('the config with a fold and a validation fraction', [...GOOD.train, '--set', 'split={fold={number=1,of=2},validation_fraction=0.5}']);
for (const file of ['nowhere/x.png', 'file', 'tiny.toml', '']) {
  add(`a dry run that draws in ${JSON.stringify(file)}`, [...GOOD.train, '--dry-run', '--sheet', file]);
}
add('a dry run without data', [...GOOD.train, '--dry-run', '--set', 'data.path=nowhere.csv']);
for (const [part, name] of [
  [/^data = .*$/m, '[data]'], [/^model = .*$/m, '[model]'], [/^loss = .*$/m, '[loss]'],
  [/path = "[^"]*", /, 'data.path'], [/kind = "csv", /, 'data.kind'], [/, levels = \[[^\]]*\]/, 'data.levels'],
  [/backbone = \{[^}]*\}, /, 'model.backbone'], [/kind = "happier"/, 'loss.kind'],
]) {
  add(`the config without ${name}`, ['train', 'bad.toml', '--out', 'new'], () => write('bad.toml', CONFIG.replace(part, '')));
}
for (const [name, text] of Object.entries({
  'that is empty': '', 'that is no TOML': '[run\nsteps', 'that is no text': Buffer.from([0xff, 0xfe, 0]),
  'with a key twice': `${CONFIG}\n[loss]\nkind = "happier"`, 'that is deeply nested': 'x='.padEnd(100_000, '['),
})) {
  add(`a config ${name}`, ['train', 'bad.toml', '--out', 'new'], () => write('bad.toml', text));
}

// --- Files -----------------------------------------------------------------------------------------

const copy = (from, to) => fs.cpSync(path.join(folder, from), path.join(folder, to), { recursive: true });
const DAMAGES = {
  'cut short': (bytes) => bytes.subarray(0, bytes.length >> 1),
  empty: () => Buffer.alloc(0),
  'of zeros': (bytes) => Buffer.alloc(bytes.length),
  missing: () => null,
};

/// Adds a call on a copy of `from` for each damage of one of its files.
function damage(from, file, call) {
  for (const [damage, apply] of Object.entries(DAMAGES)) {
    add(`akin ${call('…').join(' ')} with ${file} ${damage}`, call('bad'), () => {
      copy(from, 'bad');
      const damaged = apply(read(path.join(from, file)));
      if (damaged) write(path.join('bad', file), damaged);
      else fs.rmSync(path.join(folder, 'bad', file));
    });
  }
}

for (const file of ['config.toml', 'encoder.bpk', 'run.json']) {
  damage('run', file, (at) => ['eval', at]);
  damage('run', file, (at) => ['embed', at, 'data/images', '--out', 'new.npy']);
  damage('run', file, (at) => ['export', at, '--out', 'new']);
  damage('run', file, (at) => ['export', at, '--to', 'onnx', '--out', 'new']);
  damage('run', file, (at) => ['report', at, '--out', 'new.html']);
}
for (const file of ['config.toml', 'encoder.bpk', 'run.json', 'checkpoint.akin']) {
  damage('run', file, (at) => ['verify', at]);
}
for (const file of fs.readdirSync(path.join(folder, 'bundle'), { recursive: true })) {
  if (!fs.statSync(path.join(folder, 'bundle', file)).isFile() || path.basename(file).startsWith('.')) continue;
  damage('bundle', file, (at) => ['verify', at]);
}

for (const file of fs.readdirSync(path.join(folder, 'pictures'), { recursive: true })) {
  if (!fs.statSync(path.join(folder, 'pictures', file)).isFile() || path.basename(file).startsWith('.')) continue;
  damage('pictures', file, (at) => ['verify', at]);
  damage('pictures', file, (at) => ['search', at, 'picture.png']);
  // A removal needs neither the encoder nor the embeddings.
  if (/manifest|rows/.test(file)) damage('pictures', file, (at) => ['index', at, '--remove', 'images']);
}
for (const change of ['add', 'remove', 'relabel', 'reembed', 'collect']) {
  for (const value of BAD[`--${change}`]) {
    add(`akin index --${change} ${JSON.stringify(value)}`, ['index', 'pictures', `--${change}`, value]);
  }
}
for (const gallery of ['nowhere', 'data', 'file', 'run', 'bundle']) {
  add(`akin index --refresh of ${gallery}`, ['index', gallery, '--refresh']);
  add(`akin duplicates of ${gallery}`, ['duplicates', gallery]);
}
add('akin index of pictures without a place for the gallery', ['index', 'run', 'data/images']);
add('akin index onto another folder', ['index', 'run', 'data/images', '--out', 'data']);
add('akin index with two changes', ['index', 'pictures', '--refresh', '--compact']);
for (const file of fs.readdirSync(path.join(folder, 'bundle/0-tiny')).filter((file) => /weights|gallery/.test(file))) {
  damage('bundle', `0-tiny/${file}`, (at) => ['search', at, 'picture.png']);
}
for (const [name, bytes] of Object.entries({ 'that is empty': '', 'that is no picture': 'a picture', 'cut short': read('picture.png').subarray(0, 60) })) {
  add(`akin classify with an image ${name}`, ['classify', 'bundle', 'bad.png'], () => write('bad.png', bytes));
  add(`akin search with an image ${name}`, ['search', 'bundle', 'bad.png'], () => write('bad.png', bytes));
}
for (const photos of ['nowhere', 'file', 'run', 'data/labels.csv/x', 'no-photos', 'loose', 'few']) {
  add(`akin init ${photos}`, ['init', photos, '--out', 'new.toml']);
}
add('akin export --to of two runs', ['export', 'run', 'run', '--to', 'onnx', '--out', 'new']);
add('akin export --to onto a folder', ['export', 'run', '--to', 'onnx', '--out', 'data']);
add('akin export --to with an option of bundles', ['export', 'run', '--to', 'onnx', '--half', '--out', 'new']);
add('akin init without a folder', ['init']);
add('akin init with a control character', ['init', 'data', '--out', 'new\u001b.toml']);
add('akin init with a line end', ['init', 'data', '--out', 'new\n.toml']);
add('akin embed onto a folder', ['embed', 'run', 'data/images', '--out', 'data', '--overwrite']);
add('akin init onto a config', ['init', 'data', '--out', 'tiny.toml']);
add('akin serve of a run that is not finished', ['serve', 'unfinished']);
for (const [command, ...rest] of [['search', 'run', 'picture.png'], ['search', 'data', 'picture.png'], ['classify', 'data', 'picture.png'], ['serve', 'data'], ['report', 'bundle', '--out', 'new.html'],
  ['eval', 'data'], ['export', 'bundle', '--out', 'new'], ['resume', 'bundle']]) {
  add(`akin ${command} of another directory, ${rest[0]}`, [command, ...rest]);
}
// A directory that is not finished has a mark without a list of files.
const begin = (kind) => {
  const mark = { akin: kind, version: 2, beside: false };
  const sha256 = createHash('sha256').update(JSON.stringify(mark)).digest('hex');
  write('begun/.akin.json', JSON.stringify({ ...mark, sha256 }));
};
for (const kind of ['run', 'bundle', 'gallery', 'data_set', 'comparison', 'tuning', 'demo', 'site']) {
  add(`akin verify of the beginning of a ${kind}`, ['verify', 'begun'], () => begin(kind));
}

const npy = read('e.npy');
const header = (from, to) => Buffer.from(npy.toString('latin1').replace(from, to.padEnd(from.length)), 'latin1');
for (const [name, bytes] of Object.entries({
  'cut short': npy.subarray(0, -1), 'that is empty': Buffer.alloc(0), 'of zeros': Buffer.alloc(npy.length),
  'of integers': header("'<f4'", "'<i4'"),
  'with one dimension': header('(24, 4)', '(96,)'), 'without columns': header('(24, 4)', '(9, 0)'),
  'that is huge': header('(24, 4)', '(9e9,4)'), 'with numbers that are none': Buffer.concat([npy.subarray(0, -4), Buffer.from([0, 0, 0xc0, 0x7f])]),
  'with a row of zeros': Buffer.concat([npy.subarray(0, -16), Buffer.alloc(16)]),
})) {
  add(`embeddings ${name}`, FILES.with(2, 'bad.npy'), () => write('bad.npy', bytes));
  add(`the export of embeddings ${name}`, EXPORT.with(2, 'bad.npy'), () => write('bad.npy', bytes));
}

const table = read('e-labels.csv').toString();
for (const [name, text] of Object.entries({
  'that is empty': '', 'with a header alone': 'path,order,family,species\n', 'with a column twice': table.replace('family', 'order'),
  'with a short line': table.replace(/,[^,]*\n$/, '\n'),
  'with a row of empty labels': table.replace(/[^\n]*\n$/, 'none,,,\n'), 'that is no text': Buffer.concat([Buffer.from(table), Buffer.from([0xff])]),
  'with too few lines': table.split('\n').slice(0, -2).join('\n'), 'with a class under two parents': table.replace(/,([^,]*),([^,\n]*)\n$/, ',other,$2\n'),
})) {
  add(`labels ${name}`, FILES.with(4, 'bad.csv'), () => write('bad.csv', text));
  add(`the export of embeddings and labels ${name}`, EXPORT.with(4, 'bad.csv'), () => write('bad.csv', text));
}

const species = [...new Set(table.trim().split('\n').slice(1).map((row) => row.split(',')[3]))];
const square = (value) => [['class', ...species], ...species.map((row) => [row, ...species.map((column) => value(row, column))])]
  .map((row) => row.join(',')).join('\n') + '\n';
const same = (row, column) => (row === column ? 1 : 0.5);
for (const [option, name, text] of [
  ['--parents', 'with a cycle', `class,parent\n${species.map((name, at) => `${name},${species.at(at - 1)}`).join('\n')}\n`],
  ['--parents', 'with a parent that has no row', `class,parent\n${species.map((name) => `${name},none\n${name},nothing`).join('\n')}\n`],
  ['--parents', 'without a class of the labels', 'class,parent\na,\nb,a\n'],
  ['--parents', 'with a class that is empty', 'class,parent\n,a\n'],
  ['--parents', 'without a column of parents', 'class,above\na,b\n'],
  ['--relevance-matrix', 'that is not symmetric', square((row, column) => (row < column ? 0.25 : same(row, column)))],
  ['--relevance-matrix', 'with a number that is none', square((row, column) => (row === column ? 'NaN' : 0.5))],
  ['--relevance-matrix', 'with words', square(() => 'much')],
  ['--relevance-matrix', 'below 0', square(() => -1)],
  ['--relevance-matrix', 'of zeros', square(() => 0)],
  ['--relevance-matrix', 'of strangers', square((row, column) => (row === column ? 0 : same(row, column))).replaceAll('0.5', '0')],
  ['--relevance-matrix', 'that is cut short', square(same).slice(0, -5)],
  ['--relevance-matrix', 'without a row', square(same).trim().split('\n').slice(0, -1).join('\n')],
  ['--relevance-matrix', 'with a class twice', square(same) + square(same).split('\n')[1] + '\n'],
  ['--relevance-matrix', 'of another set of classes', 'class,a\na,1\n'],
  ['--relevance-matrix', 'of 10 million classes', `class,${Array.from({ length: 1e7 }, (_, at) => at).join(',')}\n`],
]) {
  add(`${option.slice(2)} ${name}`, ['eval', '--queries', 'e.npy', '--query-labels', 'e-labels.csv', '--levels', 'species', option, 'kin.csv'], () => write('kin.csv', text));
}
for (const settings of ['label_separator=""', 'label_separator=";" --set data.parents="nowhere.csv"', 'parents="nowhere.csv"', 'relevance_matrix="nowhere.csv"']) {
  add(`a training with data.${settings}`, [...GOOD.train, ...`--set data.${settings}`.split(' ')]);
}

const fixtures = path.join(import.meta.dirname, '../core/tests/backbones');
const pth = fs.readFileSync(path.join(fixtures, 'tensors.pth'));
const legacy = fs.readFileSync(path.join(fixtures, 'tensors_legacy.pth'));
const safetensors = fs.readFileSync(path.join(fixtures, 'tensors.safetensors'));
for (const [name, bytes] of Object.entries({
  'of another network (.pth)': pth, 'of another network (old .pth)': legacy, 'of another network (.safetensors)': safetensors,
  'that would run code': fs.readFileSync(path.join(fixtures, 'runs_code.pth')), 'that are empty': Buffer.alloc(0),
  'cut short (.pth)': pth.subarray(0, -30), 'cut short (old .pth)': legacy.subarray(0, -1),
  'cut short (.safetensors)': safetensors.subarray(0, -1), 'that are a picture': read(labels[0].split(',')[0]),
})) {
  const args = [...GOOD.train, '--set', "model.backbone={kind='resnet50'}", '--set', 'model.preprocessing.crop=32'];
  add(`weights ${name}`, [...args, '--set', "model.weights='bad.pth'"], () => write('bad.pth', bytes));
  add(`an import of weights ${name}`, ['import', 'bad.pth', '--out', 'new'], () => write('bad.pth', bytes));
}
add('an import as another backbone', [...GOOD.import, '--backbone', 'resnet50']);
for (const model of [
  "backbone={kind='resnet19'}", "backbone={kind='resnet18',width=2}", 'batch_norm=dead', 'freeze_patch_embedding=2',
  'pooling=class_token', 'pooling=median', 'pooling={gem={exponent=0}}', 'pooling={gem={exponent=nan}}', 'pooling={gem={p=3}}',
]) {
  add(`the model with ${model}`, [...GOOD.train, '--set', `model.${model}`]);
}
const onnxFiles = path.resolve(import.meta.dirname, '../native-trainer/onnx/tests/files');
const vector = fs.readFileSync(path.join(onnxFiles, 'vector.onnx'));
const refusedFiles = ['unknown-operator', 'two-inputs', 'fixed-batch', 'batch-inside', 'scalar-output', 'integer-output', 'two-outputs', 'missing-data', 'data-outside'];
for (const [name, bytes] of [
  ...refusedFiles.map((name) => [name, fs.readFileSync(path.join(onnxFiles, `${name}.onnx`))]),
  ['cut short', vector.subarray(0, -9)], ['empty', Buffer.alloc(0)], ['a picture', read('picture.png')], ['not frozen', vector],
]) {
  const set = ['--set', "model.backbone={kind='onnx',path='bad.onnx'}", '--set', 'model.preprocessing=imagenet'];
  add(`a training with the ONNX file ${name}`, [...GOOD.train, ...set], () => write('bad.onnx', bytes));
  if (name === 'not frozen') continue;
  add(`akin embed with the ONNX file ${name}`, ['embed', '--onnx', 'bad.onnx', 'picture.png', '--out', 'new.npy'], () => write('bad.onnx', bytes));
}
for (const backbone of ["{kind='onnx'}", "{kind='onnx',path='nowhere.onnx'}", "{kind='onnx',path='data'}", "{kind='onnx',path='good.onnx',prefix_tokens=-1}",
  "{kind='onnx',path='good.onnx',prefix_tokens=1}", "{kind='onnx',path='good.onnx',output='x'}", "{kind='onnx',path='good.onnx',features=3,sha256='x'}"]) {
  add(`the backbone ${backbone}`, [...GOOD.train, '--set', 'model.freeze_backbone=true', '--set', `model.backbone=${backbone}`], () => write('good.onnx', vector));
}
for (const model of [
  'batch_norm=thawed', 'preprocessing.crop=40', 'lora=8', 'lora={rank=0}', 'lora={rank=-1}', 'lora={rank=8,alpha=nan}', 'lora={rank=8,layers=[]}',
  "lora={rank=8,layers=['head']}",
]) {
  add(`a transformer with ${model}`, [...GOOD.train, '--set', "model.backbone={kind='dino_s16'}", '--set', `model.${model}`]);
}

for (const set of [
  "optimizer.rule={kind='rmsprop',alpha=1}", 'optimizer.lr_terms=1', 'optimizer.lr_terms=[-1]', 'optimizer.clip_value=0', 'optimizer.ema_decay=1',
  'optimizer.layer_decay=0', 'optimizer.layer_decay=2', 'optimizer.layer_decay=nan', 'model.drop_path=1', 'model.drop_path=-1', 'model.drop_path=much',
  'optimizer.decay_norms_and_biases=1', "optimizer.rule={kind='sgd',nesterov=2}", 'optimizer.chunk=0', 'optimizer.chunk=2', 'schedule.curve.kind=steps',
  'schedule.curve.kind=plateau', "schedule.curve={kind='steps',gamma=1}", "schedule.curve={kind='steps',milestones=[-2]}",
  "schedule.curve={kind='steps',milestones=2}", "schedule.curve={kind='steps',every_epochs=-1}",
  "schedule.curve={kind='plateau',patience=-1}", 'schedule.lr_warmup_steps=-1', 'schedule.lr_warmup_epochs=x', 'schedule={lr_warmup_steps=1,lr_warmup_epochs=1}',
  "schedule.curve={kind='steps',milestones=[3,2]}", "schedule.curve={kind='steps',milestones=[3],every_epochs=2}", 'run.patience=0', 'run.patience=-2', 'run.workers=0', 'run.workers=-1', 'run.workers=100000000000', 'run.workers=9223372036854775807', 'run.workers=2', 'run.precision=quarter', 'run.precision=16', 'data.split_seed=-1', 'data.split_seed=0',
]) {
  add(`a training with ${set}`, [...GOOD.train, '--set', set]);
}

add('the export of embeddings with a missing picture', EXPORT.with(4, 'bad.csv'), () => write('bad.csv', table.replace('.png', '.jpg')));
add('the export of embeddings of another run', ['export', 'run', ...EXPORT.slice(1)]);
add('the export of embeddings for PyTorch', [...EXPORT, '--to', 'pytorch']);
add('the export of embeddings without labels', ['export', '--embeddings', 'e.npy', '--out', 'new']);
add('more shards than queries', [...FILES, '--shard', '1/99999', '--out', 'part.json']);
for (const part of BAD['--merge']) add(`the merge of ${part}`, ['eval', '--merge', part]);

const set = read('data/labels.csv').toString();
for (const [name, text] of Object.entries({
  'without a path': set.replace(/\nimages[^,]*/, '\n'), 'with an unknown split': set.replace(/,train\n/, ',trian\n'),
  'without training images': set.replaceAll(',train', ',test'), 'without queries': set.replaceAll(',test', ',train'),
  'with an image that is missing': set.replace(/\nimages/, '\nnowhere'), 'with a column twice': set.replace('family', 'order'),
  'that is empty': '',
})) {
  const args = [...GOOD.train, '--set', "data.path='bad.csv'", '--set', "data.images='data'"];
  add(`a data set ${name}`, args, () => write('bad.csv', text));
}

const PARQUET = path.resolve(import.meta.dirname, '../native-trainer/tests/fixtures/parquet');
const parquet = fs.readFileSync(path.join(PARQUET, 'table-snappy.parquet'));
const changed = (place) => parquet.with(place, parquet[place] ^ 0xff);
for (const [name, bytes, settings] of [
  ['without a label', parquet, "levels=['kind','variety']"], ['without a column', parquet, "levels=['species']"],
  ['with labels of another type', parquet, "levels=['weight']"], ['with lists as labels', parquet, "levels=['tags']"],
  ['with images that are numbers', parquet, "levels=['kind'],path_column='variety'"],
  ['with images that are missing', parquet, "levels=['kind']"],
  ['with a split that there is not', parquet, "levels=['kind'],path_column='picture',split_column='kind'"],
  ['that is empty', '', "levels=['kind']"], ['that is a text', 'path,kind\na.png,Apple\n', "levels=['kind']"],
  ['that is cut', parquet.subarray(0, -1), "levels=['kind']"], ['that lacks its beginning', parquet.subarray(999), "levels=['kind']"],
  ['with another footer', changed(parquet.length - 100), "levels=['kind']"], ['with another page', changed(40), "levels=['kind']"],
  ['of another compression', fs.readFileSync(path.join(PARQUET, 'table-lz4.parquet')), "levels=['kind']"],
  ['of which two columns have the same bytes', fs.readFileSync(path.join(PARQUET, 'overlap.parquet')), "levels=['kind']"],
  ['that unpacks to too much', fs.readFileSync(path.join(PARQUET, 'bomb.parquet')), "levels=['kind'],path_column='picture'"],
]) {
  const data = `data={kind='parquet',path='bad.parquet',${settings}}`;
  add(`a Parquet file ${name}`, [...GOOD.train, '--set', data], () => write('bad.parquet', bytes));
}
for (const [name, path] of [['in no file', 'nowhere.parquet'], ['in a folder without files', 'no-photos'], ['in a device', '/dev/zero']]) {
  add(`Parquet ${name}`, [...GOOD.train, '--set', `data={kind='parquet',path='${path}',levels=['kind']}`]);
}

const part = (name) => fs.readFileSync(path.join(PARQUET, 'hub', name));
for (const [name, files] of [
  ['without an evaluation split', { 'train-1.parquet': part('train-00000-of-00002.parquet'), 'validation-1.parquet': part('test-00000-of-00001.parquet') }],
  ['without a part', { 'data/train-00000-of-00002.parquet': part('train-00000-of-00002.parquet'), 'data/test-1.parquet': part('test-00000-of-00001.parquet') }],
  ['called after no split', { 'a.parquet': part('train-00000-of-00002.parquet'), 'test.parquet': part('test-00000-of-00001.parquet') }],
]) {
  const data = "data={kind='parquet',path='hub',levels=['kind','variety'],path_column='image'}";
  add(`a folder of Parquet files ${name}`, [...GOOD.train, '--set', data], () => Object.entries(files).forEach(([file, bytes]) => write(`hub/${file}`, bytes)));
}
add('akin init of a folder of data sets', ['init', 'hub', '--out', 'new.toml'], () => write('hub/fine/train-1.parquet', part('train-00000-of-00002.parquet')));
add('akin init of a table without labels', ['init', 'unlabelled', '--out', 'new.toml'], () => {
  write('unlabelled/a.csv', 'path,kind\n1.png,\n2.png,Pear\n');
  for (const name of ['1.png', '2.png']) write(`unlabelled/${name}`, '');
});
add('akin train on a folder', ['train', 'data', '--out', 'new']);
add('akin train on a run', ['train', 'run', '--out', 'new']);
add('akin data verify of a CSV file by name', ['data', 'verify', 'csv', 'data/labels.csv']);

const KINDS = ['sop', 'cub200', 'cars196', 'inshop', 'inat_base', 'inat_full', 'dyml_vehicle', 'dyml_animal', 'dyml_product',
  'cifar100', 'nabirds', 'omniglot', 'grocery', 'aircraft', 'h_gldv2', 'roxford5k', 'rparis6k'];
for (const kind of KINDS) add(`a copy of ${kind} without its files`, ['data', 'verify', kind, 'empty'], () => write('empty/x', ''));
const writeCopy = (files) => Object.entries(files).forEach(([name, text]) => write(`copy/${name}`, text));
const PARTS = 'fname,middle_id,coarse_id\na.jpg,1,2\n';
for (const [name, kind, files] of [
  ['with wrong counts', 'omniglot', { 'images_background/a/b/c.png': '', 'images_evaluation/d/e/f.png': '' }],
  ['without a column', 'dyml_product', { 'train/label.csv': PARTS, 'mini-bmk_all_in_one/label.csv': PARTS }],
  ['with a label that has no parent', 'nabirds', {
    'images.txt': 'a x.jpg', 'image_class_labels.txt': 'a 5', 'train_test_split.txt': 'a 1', 'classes.txt': '5 Owl', 'hierarchy.txt': '6 0',
  }],
  ['whose labels are no MATLAB file', 'cars196', { 'cars_annos.mat': 'MATLAB' }],
  ['that is cut', 'cifar100', { 'train.bin': 'x', 'test.bin': '', 'coarse_label_names.txt': 'a', 'fine_label_names.txt': 'b' }],
]) add(`a copy of ${kind} ${name}`, ['data', 'verify', kind, 'copy'], () => writeCopy(files));
for (const set of ['data.hierarchy=nowhere', 'data.benchmark=fine', 'data.difficulty=easy', 'data.junk_column=nowhere', 'data.kind=sop', "data={kind='sop',path='.',levels=['x']}",
  "data={kind='sop',path='.',levels=['product','category']}", "data={kind='cub200',path='.',levels=['order']}"]) {
  add(`a data set with ${set}`, [...GOOD['data check'], '--set', set]);
}

for (const name of ['bad.jpg', 'bad.png', 'bad.webp', 'bad.gif', 'bad.heic']) {
  for (const [damage, bytes] of Object.entries({ empty: '', 'of text': 'no picture', 'with no end': Buffer.from('\x89PNG\r\n\x1a\n', 'latin1') })) {
    add(`a picture ${name} ${damage}`, ['embed', 'run', name, '--out', 'new.npy'], () => write(name, bytes));
  }
}

// --- The calls -------------------------------------------------------------------------------------

const began = Date.now();
const before = listing();
let failures = 0;
for (const { name, args, prepare } of cases) {
  prepare?.();
  const prepared = listing();
  const { status, signal, error, stdout, stderr } = run(args);
  const faults = [];
  if (error ?? signal) faults.push(`it ended with ${error?.code ?? signal}`);
  if (status === 0) faults.push('it succeeded');
  if (stderr.includes('panicked')) faults.push('it panicked');
  if (!/^error: \S/m.test(stderr) && status !== 2) faults.push('it has no message');
  if (!/^ {2}(hint|tip): \S/m.test(stderr) && !/Usage:|--help/.test(stderr)) faults.push('it has no hint');
  if (listing() !== prepared) faults.push('it left something behind');
  if (faults.length) {
    failures += 1;
    console.error(`${name}: ${faults.join(', ')}\n  akin ${args.join(' ')}\n${stdout}${stderr}`);
  }
  for (const entry of fs.readdirSync(folder)) {
    if (!before.split('\n').includes(entry)) fs.rmSync(path.join(folder, entry), { recursive: true, force: true });
  }
}
const seconds = Math.round((Date.now() - began) / 1000);
console.log(`figure: bad inputs that were refused with a message and a hint: ${cases.length - failures} of ${cases.length}, in ${seconds} s`);
if (cases.length < 300 || failures) process.exit(1);
