// When the server has another bundle now than the one that is open: the page is loaded again, and says why. The address
// holds its state, but not the reader's own picture.

import { session } from "./session.js";

const KEY = "akin-replaced";
const TEXT =
  "The gallery was replaced on the server while it was open. The page was loaded again, and shows the new one.";

export function reloadWhenReplaced(): void {
  const picture = take();
  const isReloaded = picture !== null;
  if (isReloaded) say(picture);
  session.addEventListener("replaced", () => {
    // A gallery that changes all the time would let the page load for ever. Then its error stands there instead.
    if (!isReloaded && put()) location.reload();
  });
}

/** The name of the picture that was the query, or "", if the page was loaded again; then forgotten. Else null. */
function take(): string | null {
  try {
    const picture = sessionStorage.getItem(KEY);
    sessionStorage.removeItem(KEY);
    return picture;
  } catch {
    // Storage may be forbidden.
    return null;
  }
}

function put(): boolean {
  try {
    sessionStorage.setItem(KEY, session.ownPicture ?? "");
    return true;
  } catch {
    return false;
  }
}

function say(picture: string): void {
  const note = document.createElement("p");
  note.className = "replaced";
  note.setAttribute("role", "status");
  note.dataset["testid"] = "replaced";
  document.getElementById("main")?.prepend(note);
  // A screen reader reads what is added to a status that is there already.
  const gone = ` Your picture “${picture}” is gone; choose it again to search with it.`;
  requestAnimationFrame(() => (note.textContent = picture === "" ? TEXT : TEXT + gone));
}
