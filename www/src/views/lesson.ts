import { html, render } from "lit";
import { whole } from "../address.js";
import "../lesson/akin-lesson.js";
import { STEPS } from "../lesson/steps.js";
import { defineView } from "./view.js";

const parameters = {
  /** The step shown, from 1. */
  step: whole(1, { min: 1, max: STEPS.length }),
};

/** AP and H-AP in eight steps, each with a task. */
export const view = defineView({
  parameters,
  open({ root, address }) {
    const draw = () => {
      const { step, hide } = address.values;
      render(html`<akin-lesson .step=${step} hide=${hide.join(" ")}></akin-lesson>`, root);
    };
    draw();
    address.onRestore(draw);
  },
});
