import type { Choice } from "./choice.js";
import type { Measures, State } from "../messages/training.js";

/** One run, as the page shows it. */
export interface Run {
  name: "A" | "B";
  choice: Choice;
  batch: number;
  state: State;
  history: Measures[];
}
