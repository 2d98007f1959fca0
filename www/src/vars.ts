import { noChange } from "lit";
import { Directive, directive, PartType, type ElementPart, type PartInfo } from "lit/directive.js";

/** Sets custom properties through the object model: the page's security policy forbids `style` attributes. */
class Vars extends Directive {
  /** What is set, so that drawing again costs nothing where nothing has changed. */
  private readonly set = new Map<string, string | number>();

  constructor(part: PartInfo) {
    super(part);
    if (part.type !== PartType.ELEMENT) throw new Error("vars() must be used on an element");
  }

  render(_values: Record<string, string | number>) {
    return noChange;
  }

  override update(part: ElementPart, [values]: [Record<string, string | number>]) {
    const { style } = part.element as HTMLElement;
    for (const [name, value] of Object.entries(values)) {
      if (this.set.get(name) === value) continue;
      this.set.set(name, value);
      style.setProperty(name, String(value));
    }
    return noChange;
  }
}

export const vars = directive(Vars);
