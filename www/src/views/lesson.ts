import { html, render } from "lit";
import { whole } from "../address.js";
import "../lesson/akin-lesson.js";
import { PARTS } from "../lesson/parts.js";
import { defineView } from "./view.js";

const parameters = {
  /** The part shown, from 1. */
  part: whole(1, { min: 1, max: PARTS.length }),
};

/** AP and H-AP in nine parts, each with a task. */
export const view = defineView({
  parameters,
  open({ root, address }) {
    const draw = () => {
      const { part, hide } = address.values;
      render(html`<akin-lesson .number=${part} hide=${hide.join(" ")}></akin-lesson>`, root);
    };
    draw();
    address.onRestore(draw);
  },
});
