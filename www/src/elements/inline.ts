import { html, type TemplateResult } from "lit";

/** Renders a line of text with `code` and **strong** of Markdown. */
export function inline(text: string): (string | TemplateResult)[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith("`") && part.length > 2) return html`<code>${part.slice(1, -1)}</code>`;
    if (part.startsWith("**") && part.length > 4) return html`<strong>${part.slice(2, -2)}</strong>`;
    return part;
  });
}
