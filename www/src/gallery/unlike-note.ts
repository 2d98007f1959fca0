import { html, nothing } from "lit";
import * as format from "../format.js";
import type { Likeness } from "../messages/engine.js";
import { isSameBundle, type BundleEntry } from "./bundles.js";

interface Found {
  readonly encoder: string;
  readonly likeness: Likeness;
}

/** Says that a picture is unlike everything in the gallery, and why that is known. It stands before the votes. */
export function unlikeNote(
  found: readonly Found[],
  bundles: readonly BundleEntry[],
  open: string,
  chooseBundle: (path: string) => void,
) {
  const unlike = found.filter(({ likeness }) => likeness.unlike);
  if (unlike.length === 0) return nothing;
  const others = bundles.filter(({ path }) => !isSameBundle(path, open));
  return html`<div class="unlike" data-testid="unlike">
    <p class="unlike-title">
      Unlike anything in this gallery${unlike.length < found.length ? `, to ${unlike[0]?.encoder}` : nothing}
    </p>
    ${unlike.map(({ encoder, likeness: { best, unlike_below } }) => {
      const to = found.length > 1 ? `To ${encoder}, its` : "Its";
      return html`<p data-encoder=${encoder} data-best=${best} data-below=${unlike_below}>
        ${to} nearest picture has the score ${format.score(best)}. Of the gallery’s own pictures, 99 % have a nearest
        one of ${format.score(unlike_below)} or more.
      </p>`;
    })}
    <p>The results are only the least unlike, so their votes do not say what it shows.</p>
    ${
      others.length > 0
        ? html`<p class="unlike-others">
            Another gallery may know it:
            ${others.map(
              ({ path, title }) =>
                html`<button type="button" class="quiet" @click=${() => chooseBundle(path)}>${title}</button>`,
            )}
          </p>`
        : nothing
    }
  </div>`;
}
