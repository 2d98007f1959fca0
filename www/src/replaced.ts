// When the server has another bundle now than the one that is open: the page is loaded again, and says why. The address
// holds its state.

import { session } from "./session.js";

const KEY = "akin-replaced";
const TEXT =
  "The gallery was replaced on the server while it was open. The page was loaded again, and shows the new one.";

export function reloadWhenReplaced(): void {
  const isReloaded = take();
  if (isReloaded) say();
  session.addEventListener("replaced", () => {
    // A gallery that changes all the time would let the page load for ever. Then its error stands there instead.
    if (!isReloaded && put()) location.reload();
  });
}

/** Whether the page was loaded again, which is then forgotten. */
function take(): boolean {
  try {
    const isReloaded = sessionStorage.getItem(KEY) !== null;
    sessionStorage.removeItem(KEY);
    return isReloaded;
  } catch {
    // Storage may be forbidden.
    return false;
  }
}

function put(): boolean {
  try {
    sessionStorage.setItem(KEY, "yes");
    return true;
  } catch {
    return false;
  }
}

function say(): void {
  const note = document.createElement("p");
  note.className = "replaced";
  note.setAttribute("role", "status");
  note.dataset["testid"] = "replaced";
  document.getElementById("main")?.prepend(note);
  // A screen reader reads what is added to a status that is there already.
  requestAnimationFrame(() => (note.textContent = TEXT));
}
