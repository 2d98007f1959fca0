import { rgb } from "../map/marks.js";

/** Notebooks change their stylesheets some time after they have said so. */
const LATER_MS = 400;

/** Makes an element light or dark as the notebook around it is: text is light where the page is dark. */
export function followNotebook(element: HTMLElement): () => void {
  const set = () => {
    const around = element.parentElement;
    if (!around) return;
    const [red, green, blue] = rgb(getComputedStyle(around).color);
    const scheme = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5 ? "dark" : "light";
    if (element.style.colorScheme !== scheme) element.style.colorScheme = scheme;
  };
  const changed = () => {
    set();
    setTimeout(set, LATER_MS);
  };
  const themes = new MutationObserver(changed);
  for (const root of [document.documentElement, document.body]) themes.observe(root, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  set();
  return () => {
    themes.disconnect();
    system.removeEventListener("change", changed);
  };
}
