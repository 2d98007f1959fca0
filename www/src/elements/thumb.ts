import { toFailure } from "../failure.js";
import type { SpriteSource } from "../sprites.js";

/** One thumbnail, cut from its sheet: `<akin-thumb .picture>`. Screen readers skip it, because a label stands beside it. */
export class AkinThumb extends HTMLElement {
  private shown = "";
  private current: { item: number; sprites: SpriteSource } | null = null;

  set picture(picture: { item: number; sprites: SpriteSource }) {
    if (this.current?.item === picture.item && this.current.sprites === picture.sprites) return;
    this.current = picture;
    void this.show(picture.item, picture.sprites);
  }

  connectedCallback(): void {
    this.setAttribute("aria-hidden", "true");
  }

  private async show(item: number, sprites: SpriteSource): Promise<void> {
    const place = sprites.place(item);
    this.style.setProperty("--column", String(place.column));
    this.style.setProperty("--row", String(place.row));
    try {
      const sheet = await sprites.sheet(place.sheet);
      if (this.current?.item !== item || this.shown === `${sheet.url}/${item}`) return;
      this.shown = `${sheet.url}/${item}`;
      this.style.setProperty("--columns", String(sheet.columns));
      this.style.setProperty("--sheet", `url("${sheet.url}")`);
      this.removeAttribute("data-failed");
      this.removeAttribute("title");
    } catch (error) {
      this.dataset["failed"] = "";
      this.title = toFailure(error).message;
    }
  }
}
customElements.define("akin-thumb", AkinThumb);
