import { html, type TemplateResult } from "lit";

/** A line of text in which `code` and **strong** are marked as in Markdown. */
export function inline(text: string): (string | TemplateResult)[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith("`") && part.length > 2) return html`<code>${part.slice(1, -1)}</code>`;
    if (part.startsWith("**") && part.length > 4) return html`<strong>${part.slice(2, -2)}</strong>`;
    return part;
  });
}
