// <akin-look>: a dialog that shows which cells of a query and of a result carry their score.
//
// What tests may rely on:
//   [data-testid=look]          the dialog, with data-exact="true | false", data-busy, data-score
//   [data-testid=look-query], [data-testid=look-item]   the grids, with data-rows, data-columns and, when known,
//                               data-values (numbers with spaces); data-cell is the cell in focus
//   [data-testid=look-how]      the sentence that says how the numbers were found
//   [data-testid=look-readout]  the cell in focus
//   the event close

import { html, nothing, svg, type PropertyValues } from "lit";
import { property, query as element, state } from "lit/decorators.js";
import { codeSquares, differingBits } from "../elements/code-strip.js";
import codeStyles from "../elements/code-strip.css";
import { notice } from "../elements/notice.js";
import noticeStyles from "../elements/notice.css";
import { ShadowElement, sheet } from "../elements/shadow.js";
import { toFailure, type Failure } from "../failure.js";
import * as format from "../format.js";
import type { Look, LookSide, Similarity } from "../messages/engine.js";
import { session } from "../session.js";
import dialog from "../styles/dialog.css";
import { vars } from "../vars.js";
import styles from "./akin-look.css";
import { cellsOfHalf, largest, partners, strongest, type SideName } from "./grid.js";
import type { Picture } from "./picture.js";

/** Two pictures, and the encoder that compares them. */
export interface LookRequest {
  encoder: number;
  encoderName: string;
  similarity: Similarity;
  /** The score in the ranking. */
  score: number;
  /** The codes of both, of a hash encoder. */
  codes: { query: string; item: string } | null;
  query: { name: string; picture: () => Promise<Picture> };
  item: { name: string; picture: () => Promise<Picture> };
}

/** The number of the other picture's cells that are marked for the cell in focus. */
const PARTNERS = 3;
const SIDES: readonly SideName[] = ["query", "item"];

export class AkinLook extends ShadowElement {
  static override styles = [
    ...ShadowElement.styles,
    sheet(dialog),
    sheet(noticeStyles),
    sheet(codeStyles),
    sheet(styles),
  ];

  @property({ attribute: false }) accessor request: LookRequest | null = null;

  @state() private accessor pictures: Record<SideName, Picture> | null = null;
  @state() private accessor look: Look | null = null;
  /** The values of the cells. While patches are being covered, the rest is NaN. */
  @state() private accessor values: Record<SideName, number[]> = { query: [], item: [] };
  @state() private accessor busy = true;
  @state() private accessor problem: Failure | null = null;
  @state() private accessor focused: { side: SideName; cell: number } | null = null;
  @state() private accessor cellsShown = true;

  @element("dialog") private accessor dialog!: HTMLDialogElement;

  private attempt = 0;

  protected override firstUpdated(): void {
    this.dialog.showModal();
  }

  protected override updated(changed: PropertyValues<this>): void {
    if (changed.has("request")) void this.load();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.attempt++;
    this.forgetPictures();
  }

  private forgetPictures(): void {
    for (const { url } of Object.values(this.pictures ?? {})) URL.revokeObjectURL(url);
    this.pictures = null;
  }

  private async load(): Promise<void> {
    const { request } = this;
    const attempt = ++this.attempt;
    if (!request) return;
    Object.assign(this, { problem: null, busy: true, look: null });
    this.forgetPictures();
    try {
      const [query, item] = await Promise.all([request.query.picture(), request.item.picture()]);
      if (attempt !== this.attempt) return;
      this.pictures = { query, item };
      const { encoder } = request;
      await session.encoder(encoder);
      const look = await session.call("look", { encoder, query: query.bytes, item: item.bytes });
      if (attempt !== this.attempt) return;
      this.look = look;
      this.values = { query: valuesOf(look.query), item: valuesOf(look.item) };
      if (!look.exact) await this.cover(look, attempt);
      if (attempt === this.attempt) this.busy = false;
    } catch (error) {
      if (attempt !== this.attempt) return;
      this.problem = toFailure(error);
      this.busy = false;
    }
  }

  /** Covers the patches of both pictures, row by row. */
  private async cover(look: Look, attempt: number): Promise<void> {
    const { encoder } = this.request ?? { encoder: 0 };
    for (const side of SIDES) {
      const { rows, columns, embedding } = look[side];
      const other = look[side === "query" ? "item" : "query"].embedding;
      for (let row = 0; row < rows; row++) {
        const image = this.pictures?.[side].bytes;
        if (!image || attempt !== this.attempt) return;
        const falls = await session.call("occlude", { encoder, image, embedding, other, row });
        if (attempt !== this.attempt) return;
        const values = [...this.values[side]];
        falls.forEach((fall, column) => (values[row * columns + column] = fall));
        this.values = { ...this.values, [side]: values };
      }
    }
  }

  // --- Moving ----------------------------------------------------------------------------------

  private onKey(event: KeyboardEvent, side: SideName): void {
    const grid = this.look?.[side];
    if (!grid || event.altKey || event.ctrlKey || event.metaKey) return;
    const { rows, columns } = grid;
    const cell = this.focused?.side === side ? this.focused.cell : strongest(this.values[side]);
    let [row, column] = [Math.floor(cell / columns), cell % columns];
    if (event.key === "ArrowLeft") column--;
    else if (event.key === "ArrowRight") column++;
    else if (event.key === "ArrowUp") row--;
    else if (event.key === "ArrowDown") row++;
    else if (event.key === "Home") [row, column] = [0, 0];
    else if (event.key === "End") [row, column] = [rows - 1, columns - 1];
    else return;
    event.preventDefault();
    const clamp = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
    this.focused = { side, cell: clamp(row, rows) * columns + clamp(column, columns) };
  }

  private onPoint(event: PointerEvent, side: SideName): void {
    const grid = this.look?.[side];
    if (!grid) return;
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const at = (share: number, count: number) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    const row = at((event.clientY - box.top) / box.height, grid.rows);
    const column = at((event.clientX - box.left) / box.width, grid.columns);
    this.focused = { side, cell: row * grid.columns + column };
  }

  // --- The dialog ------------------------------------------------------------------------------

  protected override render() {
    const { request, look, busy, problem } = this;
    return html`<dialog
      class="dialog"
      data-testid="look"
      data-exact=${look ? look.exact : nothing}
      data-score=${look ? look.score : nothing}
      data-busy=${busy}
      aria-labelledby="title"
      @close=${() => this.dispatchEvent(new Event("close"))}
    >
      ${request ? this.content(request, look) : nothing}
      ${problem ? notice(problem, "The pictures could not be compared", { label: "Try again", run: () => void this.load() }) : nothing}
      <p class="dialog-buttons">
        <button type="button" class="button" @click=${() => this.dialog.close()}>Close</button>
        ${
          look
            ? html`<label class="check"
                ><input
                  type="checkbox"
                  .checked=${this.cellsShown}
                  @change=${(event: Event) => (this.cellsShown = (event.target as HTMLInputElement).checked)}
                />
                Show the cells</label
              >`
            : nothing
        }
      </p>
    </dialog>`;
  }

  private content(request: LookRequest, look: Look | null) {
    return html`<header>
        <h2 id="title">Where it looks</h2>
        <p class="soft">Two pictures as ${request.encoderName} compares them.</p>
      </header>
      ${request.codes ? this.codes(request.codes) : nothing}
      ${look ? html`<p data-testid="look-how">${this.how(look)}</p>` : html`<p role="status">Comparing the two pictures.</p>`}
      ${look && !look.exact && this.busy ? this.progress() : nothing}
      <div class="pictures">${this.figure("query", request.query.name)}${this.figure("item", request.item.name)}</div>
      ${look ? html`${this.readout(look)}${this.legend()}${this.notes(request, look)}` : nothing}`;
  }

  private codes({ query, item }: { query: string; item: string }) {
    const differing = differingBits(query, item);
    return html`<section class="codes" data-testid="look-codes" data-differing=${differing.join(" ")}>
      <p>
        Their codes differ in <strong>${differing.length} of ${format.count(query.length, "bit")}</strong>: that number
        is their Hamming distance${differing.length > 0 ? html`. A line marks the bits that differ` : nothing}.
      </p>
      <div class="pictures">
        ${codeSquares("The query’s code", query, item)}${codeSquares("The result’s code", item, query)}
      </div>
    </section>`;
  }

  /** How the numbers were found. */
  private how({ exact, score, query }: Look) {
    if (exact) {
      return html`The score of this encoder is exactly a sum over the cells of either picture: the numbers in the cells
        add up to <span class="number">${score.toFixed(3)}</span>.`;
    }
    const reason = this.isDistance()
      ? `The score of this encoder is ${this.isCode() ? "minus the Hamming distance" : "minus a distance"}, which`
      : "This encoder embeds a picture by the class token of a transformer, which";
    return html`${reason} is no sum over parts of a picture. So this is measured by covering: each of
    ${query.rows * query.columns} patches was covered with the picture’s mean colour, and its number is by how much the
    score fell.`;
  }

  private progress() {
    const known = SIDES.flatMap((side) => this.values[side]);
    const done = known.filter((value) => !Number.isNaN(value)).length;
    return html`<p class="progress">
      <label>Covering patches <progress max=${known.length} .value=${done}></progress></label>
      <span class="number">${done} of ${known.length}</span>
    </p>`;
  }

  private figure(side: SideName, name: string) {
    const picture = this.pictures?.[side];
    const grid = this.look?.[side];
    const title = side === "query" ? "The query" : "The result";
    return html`<figure>
      <figcaption><span class="eyebrow">${title}</span> <strong>${name}</strong></figcaption>
      <div class="picture" data-cells=${this.cellsShown && grid !== undefined}>
        ${picture ? html`<img src=${picture.url} alt="" />` : nothing}
        ${grid && this.cellsShown ? this.grid(side, `${title}: ${name}`, grid) : nothing}
      </div>
      ${grid ? html`<p class="soft small">${this.summary(side)}</p>` : nothing}
    </figure>`;
  }

  private grid(side: SideName, label: string, { rows, columns, region }: LookSide) {
    const { look, focused } = this;
    const values = this.values[side];
    const most = this.most();
    const [left, top, width, height] = region;
    const isOther = focused !== null && focused.side !== side;
    const marked = look && isOther ? partners(look, focused.side, focused.cell, PARTNERS) : [];
    const own = focused?.side === side ? focused.cell : null;
    const cell = (index: number, name: string, inset: number) =>
      svg`<rect class=${name} x=${(index % columns) + inset} y=${Math.floor(index / columns) + inset} width=${1 - 2 * inset} height=${1 - 2 * inset}></rect>`;
    const known = values.flatMap((value, index) => (value && !Number.isNaN(value) ? [{ value, index }] : []));
    return html`<svg
      class="cells"
      viewBox="0 0 ${columns} ${rows}"
      preserveAspectRatio="none"
      role="application"
      aria-roledescription="picture in cells"
      aria-label=${`${label}, ${rows} rows and ${columns} columns of cells`}
      aria-describedby="keys"
      tabindex="0"
      data-testid=${`look-${side}`}
      data-rows=${rows}
      data-columns=${columns}
      data-cell=${own ?? nothing}
      data-values=${values.some(Number.isNaN) ? nothing : values.join(" ")}
      ${vars({ "--left": left, "--top": top, "--width": width, "--height": height })}
      @keydown=${(event: KeyboardEvent) => this.onKey(event, side)}
      @focus=${() => (this.focused ??= { side, cell: strongest(values) })}
      @pointermove=${(event: PointerEvent) => this.onPoint(event, side)}
      @pointerdown=${(event: PointerEvent) => this.onPoint(event, side)}
    >
      <defs>
        <pattern id="hatch" width="0.25" height="0.25" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <path class="hatch" d="M0 0V0.25"></path>
        </pattern>
      </defs>
      ${known.map(({ value, index }) => {
        const [x, y] = [index % columns, Math.floor(index / columns)];
        const share = Math.abs(value) / most;
        return svg`<rect class=${value > 0 ? "more" : "less"} x=${x} y=${y} width="1" height="1" fill-opacity=${(0.85 * share).toFixed(3)}></rect>
          ${value < 0 ? svg`<rect x=${x} y=${y} width="1" height="1" fill="url(#hatch)" opacity=${share.toFixed(3)}></rect>` : nothing}`;
      })}
      <path class="lines" d=${lines(rows, columns)}></path>
      ${marked.map(({ cell: index }, place) => cell(index, place === 0 ? "partner first" : "partner", 0.12))}
      ${own === null ? nothing : [cell(own, "focus-back", 0), cell(own, "focus", 0)]}
    </svg>`;
  }

  /** The size of the largest value of both pictures, which has the full colour. */
  private most(): number {
    const known = SIDES.flatMap((side) => this.values[side].filter((value) => !Number.isNaN(value)));
    return largest(known) || 1;
  }

  private summary(side: SideName): string {
    const values = this.values[side];
    if (values.some(Number.isNaN)) return "";
    if (this.look?.exact) {
      const half = cellsOfHalf(values);
      return half === null ? "" : `${half} of ${format.count(values.length, "cell")} carry half of the score.`;
    }
    const cell = strongest(values);
    const value = values[cell] ?? 0;
    return value > 0
      ? `Covering ${this.place(side, cell)} lowers the score most: by ${this.signed(value).slice(1)}.`
      : "Covering a single patch does not lower the score.";
  }

  private place(side: SideName, cell: number): string {
    const columns = this.look?.[side].columns ?? 1;
    return `row ${Math.floor(cell / columns) + 1}, column ${(cell % columns) + 1}`;
  }

  private readout(look: Look) {
    return html`<p class="readout" role="status" data-testid="look-readout">${this.reading(look)}</p>
      <p id="keys" class="visually-hidden">The arrow keys move from cell to cell.</p>`;
  }

  private reading(look: Look) {
    const { focused } = this;
    if (!focused) return html`<span class="soft">Point at a cell, or focus a picture and press the arrow keys.</span>`;
    const { side, cell } = focused;
    const value = this.values[side][cell] ?? NaN;
    const where = `${side === "query" ? "Query" : "Result"}, ${this.place(side, cell)}:`;
    if (Number.isNaN(value)) return html`${where} not covered yet.`;
    const number = html`<span class="number">${this.signed(value)}</span>`;
    if (!look.exact) {
      const effect =
        value > 0
          ? "covering it lowers the score"
          : value < 0
            ? "covering it raises the score"
            : "covering it changes nothing";
      return html`${where} ${number}, ${effect}.`;
    }
    const [best] = partners(look, side, cell, 1);
    const other = side === "query" ? "item" : "query";
    return html`${where} ${number}, ${format.percent(value / look.score)} of the score.
    ${best ? html`Most of it with ${this.place(other, best.cell)} of the ${other === "item" ? "result" : "query"} (${this.signed(best.value)}).` : nothing}`;
  }

  private legend() {
    const most = this.most();
    return html`<div class="legend" aria-hidden="true">
      <span>lowers the score <span class="number">${this.signed(-most)}</span></span>
      <i></i>
      <span><span class="number">${this.signed(most)}</span> raises the score</span>
    </div>`;
  }

  private notes({ score, item, query }: LookRequest, look: Look) {
    const small = SIDES.filter((side) => this.pictures?.[side].thumbnail);
    const side = Math.max(...small.map((side) => this.pictures?.[side].thumbnail ?? 0));
    const which =
      small.length === 2
        ? "both pictures are"
        : small[0] === "query"
          ? `the query, ${query.name}, is`
          : `the result, ${item.name}, is`;
    return html`<p class="soft small">
      ${
        small.length > 0
          ? html`The bundle holds no originals, so ${which} read from a thumbnail of ${side} pixels: the
              ${this.isDistance() ? "distance" : "score"} of what you see here is
              <span class="number">${this.amount(look.score)}</span>, and in the ranking it is
              <span class="number">${this.amount(score)}</span>.`
          : nothing
      }
      ${look.exact ? "What the encoder knows of a cell also depends on what is around it." : "Patches can matter together, which one cover at a time does not show."}
    </p>`;
  }

  /** A score, or the distance that it stands for. */
  private amount(score: number): string {
    if (this.isCode()) return format.count(Math.round(-score), "bit");
    return (this.isDistance() ? -score : score).toFixed(3);
  }

  private signed(value: number): string {
    const sign = value > 0 ? "+" : value < 0 ? "−" : "";
    return sign + (this.isCode() ? format.count(Math.abs(Math.round(value)), "bit") : Math.abs(value).toFixed(4));
  }

  private isDistance(): boolean {
    const similarity = this.request?.similarity;
    return similarity !== "cosine" && similarity !== "dot";
  }

  private isCode(): boolean {
    return this.request?.similarity === "hamming";
  }
}
customElements.define("akin-look", AkinLook);

const valuesOf = ({ values, rows, columns }: LookSide): number[] => values ?? Array<number>(rows * columns).fill(NaN);

/** The lines between cells. */
function lines(rows: number, columns: number): string {
  const across = Array.from({ length: rows - 1 }, (_, row) => `M0 ${row + 1}H${columns}`);
  const down = Array.from({ length: columns - 1 }, (_, column) => `M${column + 1} 0V${rows}`);
  return [...across, ...down].join("");
}

declare global {
  interface HTMLElementTagNameMap {
    "akin-look": AkinLook;
  }
}
