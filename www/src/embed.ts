// One script for a page of somebody else: it defines the elements that stand in that page, and gives it
// their fonts. Each element is loaded when the page first has it. `embed.html` shows how.

import { addFonts } from "./fonts.js";

const ELEMENTS: Readonly<Record<string, () => Promise<unknown>>> = {
  "akin-map": () => import("./map/akin-map.js"),
  "akin-playground": () => import("./playground/akin-playground.js"),
  "akin-steps": () => import("./steps/akin-steps.js"),
  "akin-training": () => import("./training/akin-training.js"),
};

const waiting = new Map(Object.entries(ELEMENTS));

function defineElements(): void {
  for (const [name, load] of waiting) {
    if (!document.querySelector(name)) continue;
    waiting.delete(name);
    void load();
  }
  if (waiting.size === 0) observer.disconnect();
}

// A page may add an element later.
const observer = new MutationObserver(defineElements);
observer.observe(document.documentElement, { childList: true, subtree: true });
defineElements();
addFonts();
