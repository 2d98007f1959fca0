import { html, nothing } from "lit";
import { sentence, type Failure } from "../failure.js";
import { inline } from "./inline.js";

/** An error: what is wrong, and what to do. */
export function notice(failure: Failure, title: string, action?: { label: string; run: () => void }) {
  return html`<div class="notice" role="alert" data-testid="notice" data-code=${failure.code}>
    <svg class="notice-mark" viewBox="0 0 24 24" aria-hidden="true"><path d="M12 3v12M12 18.5v2.5" /></svg>
    <div>
      <p class="notice-title">${title}</p>
      <p>${inline(sentence(failure.message))}</p>
      <p class="hint">${inline(sentence(failure.hint))}</p>
      ${action ? html`<button type="button" class="quiet" @click=${action.run}>${action.label}</button>` : nothing}
    </div>
  </div>`;
}
