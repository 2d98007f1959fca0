import { html, render } from "lit";
import "../steps/akin-steps.js";
import type { AkinSteps } from "../steps/akin-steps.js";
import { addressOf, parameters, stateOf } from "../steps/state.js";
import { defineView } from "./view.js";

/** The smooth steps of ranking losses, and the gradients that follow from them. */
export const view = defineView({
  parameters,
  open({ root, address }) {
    const change = (event: Event) => address.set(addressOf((event.currentTarget as AkinSteps).value));
    render(
      html`<header class="view-head">
          <h1>Steps and gradients</h1>
          <p class="lede">
            A ranking has no slope: an item is above another one, or it is not. This page shows what losses put in the
            place of that step, and what becomes of the items that follow.
          </p>
        </header>
        <akin-steps hide=${address.values.hide.join(" ")} @change=${change}></akin-steps>`,
      root,
    );
    const steps = root.querySelector("akin-steps");
    if (!steps) return;
    steps.value = stateOf(address.values);
    address.onRestore((values) => {
      steps.hide = values.hide.join(" ");
      steps.value = stateOf(values);
    });
  },
});

declare global {
  interface HTMLElementTagNameMap {
    "akin-steps": AkinSteps;
  }
}
