// <akin-training>: the training ground. One or two small networks learn to embed drawn creatures, in a worker.
//
// What tests may rely on:
//   [data-testid=training]        data-state="loading | ready | failed", data-step, data-running
//   [data-example]                the examples; [data-control] the settings
//   [data-testid=step|run|reset]  the buttons
//   [data-picture=A|B]            the pictures
//   td[data-run][data-part=training|held_out][data-metric=h_ap|ap-LEVEL|gap]  data-value in full precision
//   [data-testid=notice]          an error

import { html, nothing, type PropertyValues } from "lit";
import { property, state as internal } from "lit/decorators.js";
import { readAddress } from "../address.js";
import { notice } from "../elements/notice.js";
import { saveChartButtons } from "../elements/save-chart.js";
import { ShadowElement, sheet } from "../elements/shadow.js";
import { failure, toFailure, type Failure } from "../failure.js";
import * as format from "../format.js";
import { pageFile } from "../page-file.js";
import { parseChoice, settings } from "./choice.js";
import { TrainingClient } from "./client.js";
import { exampleChoice, groundControls } from "./controls.js";
import { lossControls } from "./loss-controls.js";
import { extentOf, labelsOf, picture, placesOf, type Picture, type Sheet } from "./picture.js";
import { EXAMPLES } from "./presets.js";
import type { Description, Offer } from "../messages/training.js";
import type { RunSettings } from "./protocol.js";
import { legend, scoreCurves, scoreTable } from "./results.js";
import type { Run } from "./runs.js";
import type { Turn } from "./shapes.js";
import { CREATURES_PER_SPECIES, initialState, parameters, type GroundSettings } from "./state.js";
import styles from "./training.css";

const FILES = { creatures: "creatures.json", drawings: "creatures.jpg" };

/** Scores are taken after this many steps, and after every single step. */
const MEASURED = 10;
/** A run pauses by itself after this many steps. */
const PAUSE = 500;
/** With reduced motion a press on the button takes this many steps and draws once. */
const STILL = 50;

const SPEEDS = {
  slow: { title: "slow", steps: 1, pause: 250 },
  steady: { title: "steady", steps: 1, pause: 0 },
  fast: { title: "fast", steps: MEASURED, pause: 0 },
} as const;
type Speed = keyof typeof SPEEDS;

export class AkinTraining extends ShadowElement {
  static override styles = [ShadowElement.styles, sheet(styles)];

  /** The settings for another page, as the address of the view has them: `space=disk&seed=2`. */
  @property() accessor state = "";
  /** The settings. */
  @property({ attribute: false }) accessor value: GroundSettings = initialState();

  @internal() private accessor failed: Failure | null = null;
  @internal() private accessor description: Description | null = null;
  @internal() private accessor offers: readonly Offer[] = [];
  @internal() private accessor runs: readonly Run[] = [];
  @internal() private accessor running = false;
  @internal() private accessor busy = true;
  @internal() private accessor speed: Speed = "steady";
  @internal() private accessor turn: Turn = { yaw: 0.5, pitch: 0.35 };
  @internal() private accessor creature: number | null = null;
  @internal() private accessor spoken = "";

  private client: TrainingClient | null = null;
  private drawings: Sheet = { address: "", side: 56, columns: 12, count: 0 };
  /** Counts the starts, so that an answer of an earlier one is not shown. */
  private starts = 0;
  private lastSpoken = 0;
  private dragged: { x: number; y: number } | null = null;

  override connectedCallback() {
    super.connectedCallback();
    if (!this.client) void this.open();
  }

  override disconnectedCallback() {
    super.disconnectedCallback();
    this.running = false;
    this.client?.stop(failure("closed", "the training ground was closed", "open it again"));
    this.client = null;
  }

  protected override willUpdate(changed: PropertyValues<this>) {
    if (changed.has("state") && this.state !== "") this.value = readAddress(parameters, `?${this.state}`);
    const before = changed.get("value");
    if (!changed.has("value") || !before || !this.description) return;
    const differs = ([name, value]: [string, unknown]) =>
      !["steps", "family"].includes(name) && before[name as keyof GroundSettings] !== value;
    if (Object.entries(this.value).some(differs)) void this.restart(this.value.steps);
  }

  // --- The worker ------------------------------------------------------------------------------

  private async open() {
    this.failed = null;
    this.busy = true;
    try {
      this.client = new TrainingClient((failed) => this.fail(failed));
      const file = (name: string) => pageFile(`build/${name}`);
      const answer = await fetch(file(FILES.creatures));
      if (!answer.ok) {
        throw failure(
          "network",
          `the creatures could not be loaded (${answer.status})`,
          "check the connection and try again",
        );
      }
      const text = await answer.text();
      const { side, columns, species } = JSON.parse(text) as { side: number; columns: number; species: unknown[] };
      this.drawings = { address: file(FILES.drawings), side, columns, count: species.length };
      this.description = await this.client.call("open", { text });
      await this.restart(this.value.steps);
    } catch (error) {
      this.fail(toFailure(error));
    }
  }

  private fail(failed: Failure) {
    if (!this.isConnected) return;
    this.running = false;
    this.busy = false;
    this.failed = failed;
  }

  /** Starts both runs anew and takes some steps. */
  private async restart(steps = 0) {
    const { client } = this;
    if (!client) return;
    const start = ++this.starts;
    this.running = false;
    this.busy = true;
    this.failed = null;
    try {
      const { space } = this.value;
      const offers = await client.call("losses", { space });
      const choices = this.choices(offers);
      const { rate, seed } = this.value;
      const runs = choices.map(({ choice, batch }): RunSettings => ({
        space,
        loss: settings(choice),
        species: batch / CREATURES_PER_SPECIES,
        creatures: CREATURES_PER_SPECIES,
        rate,
        seed,
      }));
      const states = await client.call("start", { runs });
      if (start !== this.starts) return;
      this.offers = offers;
      this.runs = choices.flatMap((choice, index) => {
        const state = states[index];
        return state ? [{ ...choice, state, history: state.measures ? [state.measures] : [] }] : [];
      });
      while (this.step < steps && start === this.starts) {
        const next = Math.min(steps, this.step + MEASURED);
        await this.advance(next - this.step, true);
      }
      if (start === this.starts) this.speak(true);
    } catch (error) {
      if (start === this.starts) this.fail(toFailure(error));
    } finally {
      if (start === this.starts) this.busy = false;
    }
  }

  /** The losses of the runs. A loss that the space does not have is replaced by the first one of its example or list. */
  private choices(offers: readonly Offer[]): Pick<Run, "name" | "choice" | "batch">[] {
    const [any] = offers;
    if (!any) return [];
    const fallback = EXAMPLES.find(({ space }) => space === this.value.space);
    const choice = (text: string, other: string | undefined) =>
      parseChoice(text, offers) ??
      parseChoice(other ?? "", offers) ?? { offer: any, companion: null, changes: new Map() };
    const { a, b, batch_a, batch_b } = this.value;
    const first = { name: "A" as const, choice: choice(a, fallback?.a), batch: Number(batch_a) };
    const second = { name: "B" as const, choice: choice(b, fallback?.b), batch: Number(batch_b) };
    return b === "" ? [first] : [first, second];
  }

  private get step(): number {
    return this.runs[0]?.state.step ?? 0;
  }

  private async advance(steps: number, measured = (this.step + steps) % MEASURED === 0) {
    const { client, starts } = this;
    const states = await client?.call("advance", { steps, measured });
    if (!states || starts !== this.starts) return;
    this.runs = this.runs.map((run, index) => {
      const state = states[index] ?? run.state;
      return { ...run, state, history: state.measures ? [...run.history, state.measures] : run.history };
    });
    this.speak(false);
  }

  private readonly onStep = async () => {
    if (this.busy || this.running) return;
    await this.work(() => this.advance(1, true));
  };

  private readonly onRun = async () => {
    if (this.running) {
      this.running = false;
      return;
    }
    if (this.busy) return;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      await this.work(() => this.advance(STILL - (this.step % MEASURED), true));
      return;
    }
    this.running = true;
    const end = this.step + PAUSE;
    await this.work(async () => {
      const { starts } = this;
      while (this.running && starts === this.starts && this.step < end && this.checkVisibility()) {
        const began = performance.now();
        const { steps, pause } = SPEEDS[this.speed];
        // A longer stride ends where scores are due.
        await this.advance(steps - (this.step % steps));
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, pause - (performance.now() - began))));
        await this.updateComplete;
      }
    });
  };

  /** Does something that changes the runs, and then writes the number of steps into the address. */
  private async work(task: () => Promise<void>) {
    this.busy = true;
    const { starts } = this;
    try {
      await task();
    } catch (error) {
      if (starts === this.starts) this.fail(toFailure(error));
    } finally {
      if (starts === this.starts) {
        this.running = false;
        this.busy = false;
        this.tell({ steps: this.step });
        this.speak(true);
      }
    }
  }

  private readonly onReset = () => {
    this.tell({ steps: 0 });
    void this.restart();
  };

  /** Changes the settings and tells the page around. */
  private readonly tell = (values: Partial<GroundSettings>) => {
    this.value = { ...this.value, ...values };
    this.dispatchEvent(new Event("change"));
  };

  private readonly redraw = () => this.requestUpdate();

  /** For screen readers: where the runs stand, not more often than every ten seconds. */
  private speak(now: boolean) {
    if (!now && performance.now() - this.lastSpoken < 10_000) return;
    this.lastSpoken = performance.now();
    const says = this.runs.map((run) => {
      const last = run.history.at(-1);
      return `${run.name}, ${run.choice.offer.title}: H-AP ${format.score(last?.training.h_ap)}, of held-out species ${format.score(last?.held_out.h_ap)}`;
    });
    this.spoken = `After ${format.count(this.step, "step")}. ${says.join(". ")}.`;
  }

  // --- What is drawn ---------------------------------------------------------------------------

  override render() {
    const status = this.failed ? "failed" : this.description && this.runs.length > 0 ? "ready" : "loading";
    return html`<div
      data-testid="training"
      data-state=${status}
      data-step=${this.step}
      data-running=${this.running ? "true" : "false"}
      data-busy=${this.busy ? "true" : "false"}
    >
      ${this.shows("examples") ? exampleChoice(this.value, this.tell) : nothing}
      ${this.shows("controls") ? groundControls(this.value, this.tell, this.redraw) : nothing}
      ${
        this.failed
          ? notice(this.failed, "Training stopped", { label: "Start again", run: () => void this.startAgain() })
          : nothing
      }
      ${status === "loading" ? html`<p class="placeholder">Loading the training ground, about 0.6 MB.</p>` : nothing}
      ${this.description && this.runs.length > 0 ? this.result(this.description) : nothing}
      <p class="visually-hidden" role="status">${this.spoken}</p>
    </div>`;
  }

  private async startAgain() {
    this.client?.stop(failure("closed", "the training ground was started again", ""));
    await this.open();
  }

  private result(description: Description) {
    const [first, second] = this.runs;
    const same = first && second && first.batch === second.batch;
    return html`${this.transport()}
      <div class="runs" data-count=${this.runs.length}>${this.runs.map((run) => this.run(description, run))}</div>
      <p class="note">
        ${
          this.runs.length > 1
            ? `Both networks start with the same weights${same ? " and see the same batches" : ", and their batches are of different sizes"}. `
            : ""
        }Filled
        marks are creatures that the network learns from; open marks are of species that it never sees. Drawings are at
        the means of families.
        ${this.value.space === "circle" ? "On the circle only the direction counts: the creatures of a species stand behind one another, held-out ones on the outer ring." : nothing}
        ${this.value.space === "sphere" ? "Drag the sphere, or use the arrow keys, to turn it." : nothing}
        ${this.value.space === "disk" ? "The rim is infinitely far away: what looks small there is as large as what is in the middle." : nothing}
      </p>
      ${legend(description, this.value.family, (family) => this.tell({ family }))}
      ${this.shows("curves") ? scoreCurves(description, this.runs, this.step) : nothing}
      ${this.shows("scores") ? scoreTable(description, this.runs) : nothing}
      <p class="note">
        The network has two hidden layers of 48 units and learns with Adam. It reads ${description.features} numbers of
        each creature: genes and colours, with noise. The body plan is not among them, so the network must learn from
        the labels which families make an order. Training and scores are computed by akin’s own code, in this browser.
      </p>`;
  }

  private transport() {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    return html`<div class="transport">
      <button
        type="button"
        class="button"
        data-testid="run"
        ?disabled=${this.busy && !this.running}
        @click=${this.onRun}
      >
        ${this.running ? "Pause" : still ? `Take ${STILL} steps` : "Train"}
      </button>
      <button type="button" class="quiet" data-testid="step" ?disabled=${this.busy} @click=${this.onStep}>
        One step
      </button>
      <button
        type="button"
        class="quiet"
        data-testid="reset"
        ?disabled=${this.busy && !this.running}
        @click=${this.onReset}
      >
        Reset
      </button>
      ${
        still
          ? nothing
          : html`<label class="field">
              <span>Speed</span>
              <select
                data-control="speed"
                @change=${(event: Event) => (this.speed = (event.target as HTMLSelectElement).value as Speed)}
              >
                ${Object.entries(SPEEDS).map(
                  ([name, { title }]) => html`<option value=${name} ?selected=${name === this.speed}>${title}</option>`,
                )}
              </select>
            </label>`
      }
      <output class="number steps">${format.count(this.step, "step")}</output>
    </div>`;
  }

  private run(description: Description, run: Run) {
    const last = run.history.at(-1);
    const view: Picture = {
      run: run.name,
      space: this.value.space,
      description,
      sheet: this.drawings,
      state: run.state,
      turn: this.turn,
      family: this.value.family,
      creature: this.creature,
      label: `${run.name}, ${run.choice.offer.title}, after ${run.state.step} steps. H-AP ${format.score(last?.training.h_ap)}, of held-out species ${format.score(last?.held_out.h_ap)}.`,
    };
    const turns = this.value.space === "sphere";
    return html`<section class="run" aria-label="Network ${run.name}">
      <h2>
        <span class="name" data-run=${run.name}>${run.name}</span>
        ${run.choice.offer.title}${run.choice.companion ? " + HIER" : ""}
      </h2>
      ${this.shows("controls") ? lossControls(run, this.offers, this.value.space, this.tell, this.redraw) : nothing}
      <div
        class="frame"
        data-turns=${turns ? "true" : "false"}
        tabindex=${turns ? "0" : nothing}
        role=${turns ? "group" : nothing}
        aria-label=${turns ? `The sphere of ${run.name}. Arrow keys turn it.` : nothing}
        @keydown=${turns ? this.onKey : nothing}
        @pointerdown=${this.onDown}
        @pointermove=${(event: PointerEvent) => this.onMove(event, view)}
        @pointerup=${this.onUp}
        @pointercancel=${this.onUp}
        @pointerleave=${() => this.dragged || (this.creature = null)}
      >
        ${picture(view)}
      </div>
      <p class="about" data-testid="about-${run.name}">${this.about(description, run)}</p>
      ${saveChartButtons(
        () => this.renderRoot.querySelector<SVGSVGElement>(`[data-picture=${run.name}]`),
        `training-${run.name.toLowerCase()}`,
      )}
    </section>`;
  }

  /** The creature under the pointer or, in the disk, how deep the tree is. */
  private about(description: Description, run: Run) {
    const { creature } = this;
    if (creature !== null) {
      const names = labelsOf(description, creature).map((id, level) => description.classes[level]?.[id] ?? "");
      const part = description.held_out[creature] ? ", held out" : "";
      return html`<i>${names.at(-1)}</i>, ${names.slice(0, -1).reverse().join(", ")}${part}`;
    }
    const depth = run.state.tree?.depth;
    if (!depth) return html`&nbsp;`;
    const each = description.levels.map((level, index) => `${level} ${depth[index]?.toFixed(1) ?? "–"}`);
    return `Distance of common ancestors from the centre: ${each.join(", ")}`;
  }

  // --- Pointer and keys ------------------------------------------------------------------------

  private readonly onKey = (event: KeyboardEvent) => {
    const by: Record<string, [number, number]> = {
      ArrowLeft: [-0.15, 0],
      ArrowRight: [0.15, 0],
      ArrowUp: [0, 0.15],
      ArrowDown: [0, -0.15],
    };
    const step = by[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.turnBy(...step);
  };

  private turnBy(yaw: number, pitch: number) {
    const limit = Math.PI / 2;
    this.turn = {
      yaw: this.turn.yaw + yaw,
      pitch: Math.min(limit, Math.max(-limit, this.turn.pitch + pitch)),
    };
  }

  private readonly onDown = (event: PointerEvent) => {
    if (this.value.space !== "sphere" || event.button !== 0) return;
    this.dragged = { x: event.clientX, y: event.clientY };
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
  };

  private onMove(event: PointerEvent, view: Picture) {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const extent = extentOf(view.space);
    if (this.dragged) {
      const scale = (2 * extent) / box.width;
      this.turnBy((event.clientX - this.dragged.x) * scale, (event.clientY - this.dragged.y) * scale);
      this.dragged = { x: event.clientX, y: event.clientY };
      return;
    }
    const x = ((event.clientX - box.left) / box.width) * 2 * extent - extent;
    const y = ((event.clientY - box.top) / box.height) * 2 * extent - extent;
    let nearest: number | null = null;
    let least = 0.06;
    for (const [index, at] of placesOf(view).entries()) {
      const distance = Math.hypot(at.x - x, at.y - y);
      if (at.behind || distance >= least) continue;
      [nearest, least] = [index, distance];
    }
    this.creature = nearest;
  }

  private readonly onUp = () => {
    this.dragged = null;
  };
}

customElements.define("akin-training", AkinTraining);
