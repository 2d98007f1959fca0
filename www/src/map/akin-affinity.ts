// <akin-affinity>: how alike the classes of the gallery are, as a matrix ordered by the taxonomy. Classes
// of one parent stand together, so an encoder that keeps families together has dark squares along the
// diagonal.
//
// What tests may rely on:
//   [data-testid=affinity]        the canvas, with data-classes
//   [data-testid=affinity-status] the cell in focus, for screen readers
//   [data-testid=alike]           the pairs of most alike classes with different parents: li[data-pair]
//   the event akin-class ({ node }) when a class is chosen

import { html, nothing, type PropertyValues } from "lit";
import { property, query as element, state } from "lit/decorators.js";
import { saveCanvasButton } from "../elements/save-chart.js";
import { ShadowElement, sheet } from "../elements/shadow.js";
import { sentence, toFailure, type Failure } from "../failure.js";
import * as format from "../format.js";
import type { Affinity } from "../messages/engine.js";
import { isStopped } from "../session.js";
import { vars } from "../vars.js";
import styles from "./akin-affinity.css";
import type { GallerySource } from "./gallery-source.js";
import { colourReader } from "./marks.js";
import { ClassTree, type ClassNode } from "./tree.js";

interface Matrix {
  classes: readonly ClassNode[];
  /** [C, C]. */
  scores: Float32Array;
  low: number;
  high: number;
}

interface Cell {
  row: number;
  column: number;
}

/** The number of pairs listed beside the matrix. */
const PAIRS = 6;
/** Names stand beside the rows where these are at least so high. */
const LEAST_ROW = 13;
const STEPS = 64;

export class AkinAffinity extends ShadowElement {
  static override styles = [...ShadowElement.styles, sheet(styles)];

  @property({ attribute: false }) accessor source: GallerySource | null = null;
  @property({ attribute: false }) accessor encoder = 0;
  /** The level of the classes, 1 … L; 0 for the finest level that the bundle has. */
  @property({ type: Number }) accessor level = 0;

  @state() private accessor matrix: Matrix | null = null;
  @state() private accessor problem: Failure | null = null;
  @state() private accessor cell: Cell | null = null;
  /** The height of the matrix in CSS pixels. */
  @state() private accessor side = 0;

  @element("canvas") private accessor canvas!: HTMLCanvasElement | null;

  private loaded = "";
  private tree: ClassTree | null = null;
  private keyboard = false;
  private readonly resized = new ResizeObserver(() => {
    this.side = this.canvas?.clientHeight ?? 0;
    this.paint();
  });
  private readonly themed = new MutationObserver(() => this.paint());
  private readonly scheme = matchMedia("(prefers-color-scheme: dark)");
  private readonly onScheme = () => this.paint();

  override connectedCallback(): void {
    super.connectedCallback();
    this.themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.scheme.addEventListener("change", this.onScheme);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.themed.disconnect();
    this.resized.disconnect();
    this.scheme.removeEventListener("change", this.onScheme);
  }

  private affinities(): readonly Affinity[] {
    const { source } = this;
    const all = source?.encoders[this.encoder]?.affinities ?? [];
    return all.filter(({ level }) => level <= (source?.collection.classLevels.length ?? 0));
  }

  private affinity(): Affinity | null {
    const all = this.affinities();
    return (
      all.find(({ level }) => level === this.level) ??
      all.reduce<Affinity | null>((a, b) => (a && a.level > b.level ? a : b), null)
    );
  }

  private async load(source: GallerySource): Promise<void> {
    const affinity = this.affinity();
    const key = affinity?.scores ?? "";
    if (key === this.loaded) return;
    this.loaded = key;
    if (!affinity) {
      this.matrix = null;
      return;
    }
    try {
      const scores = await source.numbers(affinity.scores);
      if (key === this.loaded) this.matrix = this.ordered(source, affinity, scores);
    } catch (error) {
      if (key !== this.loaded) return;
      const failure = toFailure(error);
      if (isStopped(failure)) this.loaded = "";
      else this.problem = failure;
    }
  }

  /** The matrix with its classes in the order of the tree beside the map. */
  private ordered(source: GallerySource, { level, classes }: Affinity, scores: Float32Array): Matrix {
    if (this.tree?.collection !== source.collection) this.tree = new ClassTree(source.collection);
    const { tree } = this;
    const nodes = classes
      .map((id, at) => ({ node: tree.node(level, id), at }))
      .filter((entry): entry is { node: ClassNode; at: number } => entry.node !== null)
      .sort((a, b) => a.node.place - b.node.place);
    const sorted = new Float32Array(nodes.length ** 2);
    nodes.forEach((row, y) =>
      nodes.forEach((column, x) => (sorted[y * nodes.length + x] = scores[row.at * classes.length + column.at] ?? 0)),
    );
    return {
      classes: nodes.map(({ node }) => node),
      scores: sorted,
      low: sorted.reduce((a, b) => Math.min(a, b), Infinity),
      high: sorted.reduce((a, b) => Math.max(a, b), -Infinity),
    };
  }

  private score({ row, column }: Cell): number {
    const { matrix } = this;
    return matrix?.scores[row * matrix.classes.length + column] ?? 0;
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("encoder") || changed.has("level") || changed.has("source")) this.cell = null;
    if (this.source) void this.load(this.source);
  }

  protected override updated(): void {
    const { canvas } = this;
    if (canvas) this.resized.observe(canvas);
    this.paint();
  }

  // --- Drawing ---------------------------------------------------------------------------------

  private paint(): void {
    const { canvas, matrix, renderRoot } = this;
    const context = canvas?.getContext("2d");
    if (!canvas || !context || !matrix || !(renderRoot instanceof ShadowRoot)) return;
    const side = Math.round(canvas.clientWidth * devicePixelRatio);
    if (side === 0) return;
    canvas.width = side;
    canvas.height = side;
    const count = matrix.classes.length;
    const reader = colourReader(renderRoot);
    const paper = reader.read("var(--paper)");
    const ink = reader.read("var(--ink)");
    const accent = reader.read("var(--accent)");
    const inks = Array.from({ length: STEPS + 1 }, (_, step) =>
      reader.read(`color-mix(in oklab, var(--kin-near) ${(100 * step) / STEPS}%, var(--paper-sunk))`),
    );
    reader.done();
    const edge = (at: number) => Math.round((at * side) / count);
    const range = matrix.high - matrix.low || 1;
    for (let row = 0; row < count; row++) {
      for (let column = 0; column < count; column++) {
        const share = (this.score({ row, column }) - matrix.low) / range;
        context.fillStyle = inks[Math.round(share * STEPS)] ?? paper;
        context.fillRect(edge(column), edge(row), edge(column + 1) - edge(column), edge(row + 1) - edge(row));
      }
    }
    // Lines between the classes of different parents, thicker for coarser ones.
    matrix.classes.forEach((node, at) => {
      const before = matrix.classes[at - 1];
      if (!before || node.parent === before.parent) return;
      const apart = node.parent?.parent !== before.parent?.parent || node.level === 2;
      const width = Math.max(1, (apart ? 2.5 : 1) * devicePixelRatio);
      context.fillStyle = paper;
      context.fillRect(edge(at) - width / 2, 0, width, side);
      context.fillRect(0, edge(at) - width / 2, side, width);
    });
    if (this.cell) {
      const { row, column } = this.cell;
      for (const [colour, inset] of [
        [paper, 0],
        [this.keyboard ? accent : ink, 1.5 * devicePixelRatio],
      ] as const) {
        context.strokeStyle = colour;
        context.lineWidth = 2 * devicePixelRatio;
        const size = Math.max(edge(1), 8 * devicePixelRatio);
        context.strokeRect(edge(column) - inset, edge(row) - inset, size + 2 * inset, size + 2 * inset);
      }
    }
    canvas.dataset["classes"] = String(count);
  }

  private describe(cell: Cell): string {
    const [a, b] = [this.matrix?.classes[cell.row], this.matrix?.classes[cell.column]];
    return a === b ? `${a?.name} with itself` : `${a?.name} and ${b?.name}`;
  }

  /** The pairs of most alike classes whose parents differ. */
  private alikePairs(): Cell[] {
    const { matrix } = this;
    if (!matrix) return [];
    const pairs: Cell[] = [];
    for (let row = 0; row < matrix.classes.length; row++) {
      for (let column = row + 1; column < matrix.classes.length; column++) {
        const [a, b] = [matrix.classes[row], matrix.classes[column]];
        if (a?.level === 1 || a?.parent !== b?.parent) pairs.push({ row, column });
      }
    }
    return pairs.sort((a, b) => this.score(b) - this.score(a)).slice(0, PAIRS);
  }

  // --- Moving ----------------------------------------------------------------------------------

  private cellAt(event: PointerEvent): Cell | null {
    const { matrix, canvas } = this;
    if (!matrix || !canvas) return null;
    const box = canvas.getBoundingClientRect();
    const at = (offset: number) => Math.floor((offset / box.width) * matrix.classes.length);
    const cell = { row: at(event.clientY - box.top), column: at(event.clientX - box.left) };
    const last = matrix.classes.length - 1;
    return cell.row < 0 || cell.column < 0 || cell.row > last || cell.column > last ? null : cell;
  }

  private onKey(event: KeyboardEvent): void {
    const { matrix } = this;
    if (!matrix || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const last = matrix.classes.length - 1;
    this.keyboard = true;
    if (step) {
      const at = this.cell ?? { row: 0, column: -(step[1] ?? 0) };
      const clamp = (value: number) => Math.max(0, Math.min(last, value));
      this.cell = { row: clamp(at.row + (step[0] ?? 0)), column: clamp(at.column + (step[1] ?? 0)) };
    } else if (event.key === "Home") this.cell = { row: 0, column: 0 };
    else if (event.key === "End") this.cell = { row: last, column: last };
    else if (event.key === "Enter" && this.cell) this.choose(this.cell);
    else return;
    event.preventDefault();
  }

  private choose({ row }: Cell): void {
    const node = this.matrix?.classes[row];
    if (node) this.dispatchEvent(new CustomEvent("akin-class", { detail: { node }, bubbles: true, composed: true }));
  }

  // --- The page --------------------------------------------------------------------------------

  protected override render() {
    const { source, matrix, problem } = this;
    if (problem) return html`<p role="alert" class="empty">${sentence(problem.message)} ${sentence(problem.hint)}</p>`;
    if (!source || this.affinities().length === 0) {
      return html`<p class="empty">
        This bundle does not say how alike its classes are. Write it again with <code>akin export</code>.
      </p>`;
    }
    const { classLevels } = source.collection;
    const level = this.affinity()?.level ?? 1;
    const rows = matrix?.classes.length ?? 0;
    return html`<div class="bar">
        <label class="field"
          >Classes
          <select
            data-testid="affinity-level"
            @change=${(event: Event) => (this.level = Number((event.target as HTMLSelectElement).value))}
          >
            ${this.affinities().map((entry) => html`<option value=${entry.level} ?selected=${entry.level === level}>${classLevels[entry.level - 1]}</option>`)}
          </select></label
        >
        ${
          matrix
            ? html`<span class="scale" aria-hidden="true"
                ><span class="number">${format.decimals(matrix.low, 2)}</span><i></i
                ><span class="number">${format.decimals(matrix.high, 2)}</span></span
              >`
            : nothing
        }
        <p class="soft" role="status" data-testid="affinity-status">
          ${this.cell ? html`${this.describe(this.cell)}: <span class="number">${format.score(this.score(this.cell))}</span>` : "Mean score of each pair of items"}
        </p>
      </div>
      <div class="both">
        <div class="plot" ${vars({ "--rows": rows })}>
          ${matrix ? this.names(matrix) : nothing}
          <canvas
            data-testid="affinity"
            tabindex="0"
            role="application"
            aria-roledescription="matrix"
            aria-label="How alike classes are, ordered by the taxonomy"
            aria-describedby="keys"
            @pointermove=${(event: PointerEvent) => {
              this.keyboard = false;
              this.cell = this.cellAt(event);
            }}
            @pointerleave=${() => (this.cell = null)}
            @click=${(event: PointerEvent) => {
              const cell = this.cellAt(event);
              if (cell) this.choose(cell);
            }}
            @keydown=${this.onKey}
          ></canvas>
          <p id="keys" class="visually-hidden">
            The arrow keys move from cell to cell. Enter chooses the class of the row on the map.
          </p>
        </div>
        ${matrix ? this.pairs() : nothing}
      </div>
      ${saveCanvasButton(() => this.canvas, `classes-${source.encoders[this.encoder]?.name}`)}`;
  }

  private names({ classes }: Matrix) {
    const fits = this.side / classes.length >= LEAST_ROW;
    return html`<ol class="names" aria-hidden="true">
      ${classes.map((node, at) => html`<li data-on=${this.cell?.row === at || this.cell?.column === at}>${fits || this.cell?.row === at ? node.name : ""}</li>`)}
    </ol>`;
  }

  private pairs() {
    const { matrix } = this;
    const title = matrix?.classes[0]?.level === 1 ? "The most alike" : "The most alike of different parents";
    return html`<div class="pairs">
      <h3>${title}</h3>
      <ol data-testid="alike">
        ${this.alikePairs().map((cell) => {
          const [a, b] = [matrix?.classes[cell.row], matrix?.classes[cell.column]];
          return html`<li data-pair=${`${a?.id}-${b?.id}`}>
            <button
              type="button"
              class="pair"
              @click=${() => this.choose(cell)}
              @focus=${() => (this.cell = cell)}
              @pointerenter=${() => (this.cell = cell)}
            >
              <span>${a?.name} <span class="soft">and</span> ${b?.name}</span
              ><span class="number">${format.score(this.score(cell))}</span>
            </button>
          </li>`;
        })}
      </ol>
      <p class="soft">Where these are as high as the squares along the diagonal, the encoder confuses families.</p>
    </div>`;
  }
}
customElements.define("akin-affinity", AkinAffinity);

declare global {
  interface HTMLElementTagNameMap {
    "akin-affinity": AkinAffinity;
  }
}
