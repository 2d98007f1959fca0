import { addFonts } from "../fonts.js";
import { followNotebook } from "./colour-scheme.js";
import { mapWidget } from "./map.js";
import type { Context, Model, Widget } from "./model.js";
import { playgroundWidget } from "./playground.js";
import { reportWidget } from "./report.js";

const WIDGETS: Readonly<Record<string, (model: Model) => Widget>> = {
  map: mapWidget,
  playground: playgroundWidget,
  report: reportWidget,
};

addFonts();

/** Draws a widget. Returns what ends it. */
export function render({ model, el }: Context): () => void {
  const open = WIDGETS[model.get("kind") as string];
  if (!open) throw new Error("this page holds an older akin: save the notebook and reload the page");
  const { element, close } = open(model);
  // The large text of a page would be too large between the cells of a notebook.
  element.style.setProperty("--text-m", "1rem");
  element.style.display = "block";
  el.append(element);
  const end = followNotebook(element);
  return () => {
    end();
    close();
  };
}
