import { LitElement, unsafeCSS, type CSSResult, type CSSResultArray } from "lit";
import { property } from "lit/decorators.js";
import base from "../styles/base.css";
import controls from "../styles/controls.css";
import kinship from "../styles/kinship.css";
import tokens from "../tokens.css";

/** A stylesheet for shadow roots. All elements of a class share one sheet. */
export const sheet = (text: string): CSSResult => unsafeCSS(text);

/** Tokens, text, controls and kinship rings, as on the page. */
const shared: CSSResultArray = [tokens, base, controls, kinship].map(sheet);

/**
 * An element with a shadow root, which looks the same in a page of somebody else. An element adds its own
 * stylesheet: `static override styles = [ShadowElement.styles, sheet(text)]`.
 */
export abstract class ShadowElement extends LitElement {
  static override styles: CSSResultArray = shared;

  /** The names of the parts that are not shown, with spaces between them: `hide="controls tree"`. */
  @property() accessor hide = "";

  /** Says that its text is English, also in a page of another language. */
  override connectedCallback(): void {
    super.connectedCallback();
    this.lang ||= "en";
  }

  /** Whether a part is to be shown. */
  protected shows(part: string): boolean {
    return !this.hide.split(/[\s,]+/).includes(part);
  }
}
