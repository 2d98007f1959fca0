import { LitElement } from "lit";

/** An element without a shadow root: the page's one stylesheet holds for it, and labels reach across. */
export class LightElement extends LitElement {
  protected override createRenderRoot(): HTMLElement {
    return this;
  }
}
