import { html, render } from "lit";
import * as format from "../format.js";

/** Asks before everything of a gallery is removed. */
export function askRemoval(name: string, pictures: number, isKept: boolean, remove: () => void): void {
  const dialog = document.createElement("dialog");
  dialog.className = "dialog";
  dialog.dataset["testid"] = "remove-dialog";
  dialog.setAttribute("aria-labelledby", "remove-title");
  const confirm = () => {
    dialog.close();
    remove();
  };
  render(
    html`<h2 id="remove-title">Remove “${name}”?</h2>
      <p class="soft">
        The embeddings, names and thumbnails of ${format.count(pictures, "picture")} are removed from this
        ${isKept ? "page and from this browser" : "page"}. The pictures stay where they are.
      </p>
      <p class="dialog-buttons">
        <button type="button" class="button" data-testid="remove-now" @click=${confirm}>Remove</button>
        <button type="button" class="quiet" data-testid="leave" @click=${() => dialog.close()}>Leave it</button>
      </p>`,
    dialog,
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector<HTMLElement>("[data-testid=leave]")?.focus();
}
