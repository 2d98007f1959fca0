import { html, type TemplateResult } from "lit";

/**
 * Renders a line of text with `code` and **strong** of Markdown. With `escapes`, a backslash before a mark makes it a
 * letter, except in code.
 */
export function inline(text: string, escapes = false): (string | TemplateResult)[] {
  const letters = (part: string) => (escapes ? part.replace(ESCAPE, "$1") : part);
  return text.split(escapes ? ESCAPED_MARKS : MARKS).map((part) => {
    if (part.startsWith("`") && part.length > 2) return html`<code>${part.slice(1, -1)}</code>`;
    if (part.startsWith("**") && part.length > 4) return html`<strong>${letters(part.slice(2, -2))}</strong>`;
    return letters(part);
  });
}

const MARKS = /(`[^`]+`|\*\*[^*]+\*\*)/;
/** The same, without marks that a backslash escapes. */
const ESCAPED_MARKS = /((?<!\\)`[^`]+`|(?<!\\)\*\*(?:\\.|[^*\\])+\*\*)/;
const ESCAPE = /\\([\\`*_<>[\]|#])/g;
