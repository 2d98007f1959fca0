import type { View } from "./view.js";

export interface ViewEntry {
  /** The name in the address: `?view=NAME`. */
  readonly name: string;
  /** The title in the navigation and in the browser's tab. */
  readonly title: string;
  /** Loads the view's module, when the view is first opened. */
  readonly load: () => Promise<{ readonly view: View }>;
}

/** The views of the page, in the order of the navigation. The first one is shown where the address names none. */
export const VIEWS: readonly [ViewEntry, ...ViewEntry[]] = [
  { name: "search", title: "Search", load: () => import("./search.js") },
  { name: "lesson", title: "Lesson", load: () => import("./lesson.js") },
  { name: "playground", title: "Playground", load: () => import("./playground.js") },
  { name: "steps", title: "Steps", load: () => import("./steps.js") },
  { name: "training", title: "Training ground", load: () => import("./training.js") },
  { name: "map", title: "Map", load: () => import("./map.js") },
];
