import { html, nothing, type PropertyValues } from "lit";
import { property, state } from "lit/decorators.js";
import type { Collection } from "../collection.js";
import * as format from "../format.js";
import { moveFocus, setTabStop } from "../roving.js";
import type { SpriteSource } from "../sprites.js";
import { LightElement } from "../elements/light.js";
import "../elements/thumb.js";

const PER_PAGE = 24;

/** The bundle's pictures, to be used as queries: found by class, page by page, or at random. Fires `choose` with an item. */
export class AkinSamples extends LightElement {
  @property({ attribute: false }) accessor collection: Collection | null = null;
  @property({ attribute: false }) accessor sprites: SpriteSource | null = null;
  @property({ attribute: false }) accessor chosen: number | null = null;
  @state() private accessor words = "";
  @state() private accessor page = 0;

  /** Turns to the page of the query. */
  protected override willUpdate(changed: PropertyValues): void {
    if (!this.collection || !(changed.has("chosen") || changed.has("collection"))) return;
    const at = this.chosen === null ? -1 : this.found(this.collection).indexOf(this.chosen);
    if (at >= 0) this.page = Math.floor(at / PER_PAGE);
  }

  override render() {
    const { collection, sprites } = this;
    if (!collection || !sprites) return nothing;
    const found = this.found(collection);
    const pages = Math.max(1, Math.ceil(found.length / PER_PAGE));
    const page = Math.min(this.page, pages - 1);
    const shown = found.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
    const kind = collection.manifest.queries.count > 0 ? "stored query" : "picture";
    const kinds = kind === "picture" ? "pictures" : "stored queries";
    return html`<div class="samples-bar">
        <h3 id="samples-title">Search with one from the gallery</h3>
        <label class="field search"
          ><span class="visually-hidden">Find a class</span>
          <input
            type="search"
            placeholder="Find a class"
            autocomplete="off"
            spellcheck="false"
            .value=${this.words}
            @input=${this.search}
        /></label>
        <button
          type="button"
          class="quiet"
          data-testid="random"
          ?disabled=${found.length === 0}
          @click=${() => this.random(found)}
        >
          Random
        </button>
        <nav class="pager" aria-label="Browse the gallery">
          <button
            type="button"
            class="quiet"
            aria-label="Previous pictures"
            ?disabled=${page === 0}
            @click=${() => (this.page = page - 1)}
          >
            ‹
          </button>
          <span class="number">${page + 1}<span class="soft"> / ${pages}</span></span>
          <button
            type="button"
            class="quiet"
            aria-label="Next pictures"
            ?disabled=${page >= pages - 1}
            @click=${() => (this.page = page + 1)}
          >
            ›
          </button>
        </nav>
      </div>
      ${
        shown.length === 0
          ? html`<p class="empty">No class matches “${this.words}”. Try a shorter word.</p>`
          : html`<ul class="samples" aria-labelledby="samples-title" @keydown=${moveFocus} @click=${this.onClick}>
              ${shown.map(
                (item) =>
                  html`<li>
                    <button
                      type="button"
                      data-rove
                      data-item=${item}
                      tabindex="-1"
                      aria-current=${item === this.chosen ? "true" : nothing}
                      title=${collection.path(item).join(" › ") || collection.name(item)}
                    >
                      <akin-thumb .picture=${{ item, sprites }}></akin-thumb>
                      <span class="visually-hidden">${collection.name(item)}, ${kind} ${item}</span>
                    </button>
                  </li>`,
              )}
            </ul>`
      }
      <p class="visually-hidden" role="status">
        ${this.words ? `${format.count(found.length, kind, kinds)} found` : ""}
      </p>`;
  }

  protected override updated(_changed: PropertyValues): void {
    setTabStop(this.querySelector(".samples"), this.querySelector(".samples [aria-current]"));
  }

  private found(collection: Collection): number[] {
    const words = this.words.trim().toLocaleLowerCase();
    const samples = collection.samples();
    return words ? samples.filter((item) => collection.matches(item, words)) : samples;
  }

  private search(event: Event): void {
    this.words = (event.target as HTMLInputElement).value;
    this.page = 0;
  }

  private onClick(event: Event): void {
    const item = (event.target as Element).closest<HTMLElement>("[data-item]")?.dataset["item"];
    if (item !== undefined) this.choose(Number(item));
  }

  private random(found: readonly number[]): void {
    const item = found[Math.floor(Math.random() * found.length)];
    if (item !== undefined) this.choose(item);
  }

  private choose(item: number): void {
    this.dispatchEvent(new CustomEvent("choose", { detail: item, bubbles: true }));
  }
}
customElements.define("akin-samples", AkinSamples);
