// The script of akin's widgets in a notebook (anywidget, core/python). A notebook evaluates it for each widget, but an
// element can be defined only once in a document, so the first one keeps the page's modules for all.

import type { Context } from "./model.js";

const KEPT = Symbol.for("akin.notebook");
const kept = globalThis as { [KEPT]?: Promise<typeof import("./widgets.js")> };

export default {
  async render(context: Context): Promise<() => void> {
    kept[KEPT] ??= import("./widgets.js");
    return (await kept[KEPT]).render(context);
  },
};
