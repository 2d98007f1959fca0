import { LitElement } from "lit";

/** An element without a shadow root, so that the page's stylesheet and its labels work inside it. */
export class LightElement extends LitElement {
  protected override createRenderRoot(): HTMLElement {
    return this;
  }
}
