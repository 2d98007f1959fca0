import { html, render } from "lit";
import "../training/akin-training.js";
import type { AkinTraining } from "../training/akin-training.js";
import { parameters } from "../training/state.js";
import { defineView } from "./view.js";

/** Small networks that learn to embed drawn creatures while the reader watches. */
export const view = defineView({
  parameters,
  open({ root, address }) {
    const change = (event: Event) => address.set((event.currentTarget as AkinTraining).value);
    render(
      html`<header class="view-head">
          <h1>Training ground</h1>
          <p class="lede">
            A small network places 360 drawn creatures on a circle, a sphere or a disk. What its loss asks for decides
            who ends up beside whom. Choose two losses and watch them train from the same start.
          </p>
        </header>
        <akin-training hide=${address.values.hide.join(" ")} @change=${change}></akin-training>`,
      root,
    );
    const training = root.querySelector("akin-training");
    if (!training) return;
    training.value = address.values;
    address.onRestore((values) => {
      training.hide = values.hide.join(" ");
      training.value = values;
    });
  },
});

declare global {
  interface HTMLElementTagNameMap {
    "akin-training": AkinTraining;
  }
}
