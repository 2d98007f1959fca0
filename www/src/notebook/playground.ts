import "../playground/akin-playground.js";
import { parseState, printState } from "../playground/parameters.js";
import type { State } from "../playground/state.js";
import { provideScience } from "./files.js";
import { follow, tell, type Model, type Widget } from "./model.js";

/** A state as an address has it: `ranking=23013&alpha=2`. */
const print = (state: State): string => new URLSearchParams(Object.entries(printState(state))).toString();

/** The playground. Python knows its state, and the scores of its first ranking. */
export function playgroundWidget(model: Model): Widget {
  const element = document.createElement("akin-playground");
  const place = document.createElement("div");
  const changed = () => {
    const { value, scores } = element;
    tell(model, { state: print(value), scores: scores[0] ?? {} });
  };
  element.addEventListener("change", changed);
  element.addEventListener("ready", changed);
  const end = follow(model, ["state", "hide"], () => {
    element.hide = model.get("hide") as string;
    const state = model.get("state") as string;
    if (state === print(element.value)) return;
    const parameters = new URLSearchParams(state);
    element.start(parseState((name) => parameters.get(name)));
    changed();
  });
  // The element asks for the science when it is in the document.
  void provideScience().then(() => place.append(element));
  return { element: place, close: end };
}
