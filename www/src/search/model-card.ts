import { html, type TemplateResult } from "lit";
import { inline as inlineOf } from "../elements/inline.js";

/**
 * Renders a model card in the part of Markdown that cards use: headings, paragraphs, lists, tables,
 * fenced code, `code` and **strong**. All of its text becomes text nodes, so no HTML in it takes effect.
 */
export function modelCard(markdown: string): TemplateResult {
  const blocks: TemplateResult[] = [];
  const lines = markdown.replaceAll("\r\n", "\n").split("\n");
  const take = (matches: (line: string) => boolean): string[] => {
    const taken: string[] = [];
    while (lines.length > 0 && matches(lines[0] ?? "")) taken.push(lines.shift() ?? "");
    return taken;
  };
  while (lines.length > 0) {
    const line = lines[0] ?? "";
    if (line.trim() === "") lines.shift();
    else if (line.startsWith("```")) {
      lines.shift();
      blocks.push(html`<pre>${take((line) => !line.startsWith("```")).join("\n")}</pre>`);
      lines.shift();
    } else if (/^#{1,6} /.test(line)) blocks.push(html`<h3>${inline((lines.shift() ?? "").replace(/^#+ /, ""))}</h3>`);
    else if (LIST.test(line))
      blocks.push(
        html`<ul>
          ${take((line) => LIST.test(line)).map((item) => html`<li>${inline(item.replace(LIST, ""))}</li>`)}
        </ul>`,
      );
    else if (line.startsWith("|")) blocks.push(table(take((line) => line.startsWith("|"))));
    else
      blocks.push(
        html`<p>
          ${inline(take((line) => line.trim() !== "" && !/^(#{1,6} |\||```)/.test(line) && !LIST.test(line)).join(" "))}
        </p>`,
      );
  }
  return html`${blocks}`;
}

/** A line of a card, in which a backslash before a mark makes it a letter. */
const inline = (text: string) => inlineOf(text, true);

const LIST = /^\s*(?:[-*]|\d+\.) /;

function table(lines: string[]): TemplateResult {
  const rows = lines
    .filter((line) => !/^[|:\-\s]+$/.test(line))
    .map((line) =>
      line
        .replace(/^\||\|\s*$/g, "")
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
  const [head, ...body] = rows;
  return html`<table>
    <thead>
      <tr>
        ${head?.map((cell) => html`<th scope="col">${inline(cell)}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${body.map(
        (row) =>
          html`<tr>
            ${row.map((cell) => html`<td>${inline(cell)}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`;
}
