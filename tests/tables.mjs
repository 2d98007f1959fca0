// What the scripts that write tables of native-trainer/recipes/tables share.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const tables = join(dirname(fileURLToPath(import.meta.url)), '../native-trainer/recipes/tables');

const [, script, name, kept] = process.argv;
if (name === undefined || !process.env.AKIN_DATA) {
  console.error(`usage: AKIN_DATA=FOLDER node ${script} PROGRAM [FOLDER]`);
  process.exit(2);
}
const program = resolve(name);
/** The folder of what the script makes. */
export const folder = resolve(kept ?? mkdtempSync(join(tmpdir(), 'akin-')));
mkdirSync(folder, { recursive: true });

/** Runs the program, and returns what it prints. */
export const akin = (args, cwd = folder) =>
  execFileSync(program, [...args, '--progress', 'none'], { cwd, encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'inherit'] });

/** The drawn creatures, which are drawn when they are not there. */
export function creatures() {
  const drawn = join(folder, 'creatures');
  if (!existsSync(drawn)) akin(['biomorphs', drawn, '--seed', '0']);
  return drawn;
}

/** The rows of a CSV file without quotes, each an object. */
export function readCsv(file) {
  const [header, ...rows] = readFileSync(file, 'utf8').trim().split(/\r?\n/).map((line) => line.split(','));
  return rows.map((row) => Object.fromEntries(header.map((title, place) => [title, row[place]])));
}

/** Writes the values of these columns. */
export function writeCsv(file, columns, rows) {
  const lines = rows.map((row) => columns.map((column) => row[column]).join(','));
  writeFileSync(file, `${[columns.join(','), ...lines].join('\n')}\n`);
}

/** Writes rows of numbers and texts into a file of the tables. */
export function writeTable(file, rows) {
  const text = (value) => (typeof value === 'number' && !Number.isInteger(value) ? `${+value.toFixed(4)}` : value);
  const texts = rows.map((row) => Object.fromEntries(Object.entries(row).map(([column, value]) => [column, text(value)])));
  writeCsv(join(tables, file), Object.keys(rows[0]), texts);
}

/** Replaces one section of a page of the tables; the others stay. */
export function writeSection(file, heading, text) {
  const page = join(tables, file);
  const before = readFileSync(page, 'utf8').trimEnd();
  const start = before.indexOf(heading);
  const end = start < 0 ? -1 : before.indexOf('\n## ', start + 1);
  const rest = end < 0 ? '' : before.slice(end);
  const above = start < 0 ? `${before}\n\n` : before.slice(0, start);
  writeFileSync(page, `${above}${heading}\n\n${text.trim()}\n${rest}${rest && '\n'}`);
  console.log(text);
}

export const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
export const deviation = (values) => Math.sqrt(values.reduce((sum, value) => sum + (value - mean(values)) ** 2, 0) / (values.length - 1));
/** A number as the tables show it. */
export const number = (value) => value.toFixed(2).replace('-', '−');
