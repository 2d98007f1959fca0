// Copies what a search has found, for a paper, a spreadsheet or a program.

import { html, render } from "lit";
import { relation } from "../kinship.js";
import type { OpenBundle } from "../session.js";
import type { SearchController } from "./controller.js";
import { metricCells } from "./metric-table.js";
import { queryKey } from "./query-card.js";

const FORMATS = {
  json: { name: "all as JSON", title: "Rankings and scores as JSON", text: asJson },
  csv: { name: "the rankings as CSV", title: "The rankings as CSV", text: asCsv },
  latex: { name: "the scores as LaTeX", title: "The scores as a LaTeX table", text: asLatex },
} as const;
type Format = keyof typeof FORMATS;

/** Buttons that copy the answers: their rankings, their scores, or both. */
export function copyButtons(search: SearchController, bundle: OpenBundle) {
  const hasScores = search.answers.some(({ metrics }) => metrics);
  const formats: Format[] = hasScores ? ["json", "csv", "latex"] : ["json", "csv"];
  const copy = (format: Format) => (event: Event) => {
    const status = (event.currentTarget as Element).parentElement?.querySelector("[role=status]");
    void copyText(FORMATS[format].text(search, bundle), FORMATS[format].title).then((copied) => {
      if (status) status.textContent = copied ? "Copied." : "";
    });
  };
  return html`<p class="copy-results" data-testid="copy">
    <span class="soft">Copy</span>
    ${formats.map(
      (format) =>
        html`<button type="button" class="quiet" data-copy=${format} @click=${copy(format)}>
          ${FORMATS[format].name}
        </button>`,
    )}
    <span class="soft" role="status"></span>
  </p>`;
}

/** Copies a text. Where the browser does not allow that, shows it to be copied by hand, and resolves to false. */
async function copyText(text: string, title: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    showText(text, title);
    return false;
  }
}

function showText(text: string, title: string): void {
  const dialog = document.createElement("dialog");
  dialog.className = "dialog";
  dialog.dataset["testid"] = "copy-by-hand";
  dialog.setAttribute("aria-labelledby", "copy-title");
  render(
    html`<h2 id="copy-title">${title}</h2>
      <p class="soft">The browser does not let this page copy. The text is selected: copy it with Ctrl C or ⌘ C.</p>
      <textarea readonly rows="12" spellcheck="false" aria-labelledby="copy-title" .value=${text}></textarea>
      <p class="dialog-buttons">
        <button type="button" class="button" @click=${() => dialog.close()}>Close</button>
      </p>`,
    dialog,
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  const area = dialog.querySelector("textarea");
  area?.focus();
  area?.select();
}

/** The rankings, down to the last result that the page shows. */
function rankingsOf(search: SearchController, { collection }: OpenBundle) {
  return search.answers.map(({ encoder, results, metrics }) => ({
    encoder: search.encoderName(encoder),
    scores: metrics
      ? Object.fromEntries(metricCells(metrics, collection.levels).map(({ key, value }) => [key, value]))
      : null,
    results: results.slice(0, search.k).map(({ item, score, shared_level }, index) => ({
      rank: index + 1,
      item,
      score,
      shared_level,
      relation: shared_level === null ? null : relation(shared_level, collection.levels),
      labels: collection.path(item),
    })),
  }));
}

function asJson(search: SearchController, bundle: OpenBundle): string {
  const { query } = search;
  const { levels, manifest } = bundle.collection;
  const labels = query?.kind === "item" ? bundle.collection.path(query.item) : null;
  return JSON.stringify(
    {
      bundle: manifest.title,
      levels,
      query: { name: queryKey(query), labels },
      rankings: rankingsOf(search, bundle),
    },
    null,
    2,
  );
}

function asCsv(search: SearchController, bundle: OpenBundle): string {
  const header = ["encoder", "rank", "item", "score", "shared_level", "relation", ...bundle.collection.levels];
  const rows = rankingsOf(search, bundle).flatMap(({ encoder, results }) =>
    results.map(({ rank, item, score, shared_level, relation, labels }) => [
      ...[encoder, rank, item, score, shared_level ?? "", relation ?? ""],
      ...labels,
    ]),
  );
  return [header, ...rows].map((row) => row.map(csvField).join(",")).join("\r\n") + "\r\n";
}

/** A field of RFC 4180. A text that a spreadsheet would read as a formula gets an apostrophe before it. */
function csvField(value: string | number): string {
  const text = typeof value === "string" && /^[=+\-@]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function asLatex(search: SearchController, { collection }: OpenBundle): string {
  const columns = search.answers.flatMap(({ encoder, metrics }) =>
    metrics ? [{ encoder: search.encoderName(encoder), cells: metricCells(metrics, collection.levels) }] : [],
  );
  const names = columns[0]?.cells.map(({ name }) => name) ?? [];
  const rows = names.map((name, row) => {
    const values = columns.map(({ cells }) => cells[row]?.value ?? null);
    return `${latex(name)} & ${values.map((value) => (value === null ? "--" : value.toFixed(4))).join(" & ")} \\\\`;
  });
  return [
    `% ${collection.manifest.title}, query ${queryKey(search.query)}`,
    `\\begin{tabular}{l${"r".repeat(columns.length)}}`,
    "\\toprule",
    `Score & ${columns.map(({ encoder }) => latex(encoder)).join(" & ")} \\\\`,
    "\\midrule",
    ...rows,
    "\\bottomrule",
    "\\end{tabular}",
    "",
  ].join("\n");
}

const SPECIAL: Readonly<Record<string, string>> = {
  "\\": "\\textbackslash{}",
  "~": "\\textasciitilde{}",
  "^": "\\textasciicircum{}",
  Σ: "$\\Sigma$",
};

/** A text with the characters that LaTeX reads as commands. */
const latex = (text: string): string => text.replaceAll(/[\\~^Σ&%$#_{}]/g, (sign) => SPECIAL[sign] ?? `\\${sign}`);
