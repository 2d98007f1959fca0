// <akin-steps>: the smooth steps of ranking losses, and the gradient that each loss puts on the items of one query.
//
//   <akin-steps state="preset=vanishing&tau=0.05" hide="curves"></akin-steps>
//
// `state` holds the same parameters as the address of the view (state.ts). Parts that `hide` can name: curves, sliders, equations,
// presets, losses, items, training, numbers, batches. The event `change` follows every change; `value` then holds it.
//
// What tests may rely on: [data-testid=step-chart | score-chart | trace | says | sentence | tied], .item[data-item][data-score],
// .panel[data-loss][data-value][data-exact] .push[data-item][data-push], [data-metric], [data-preset], [data-setting],
// [data-do=step | run | reset | add | remove], [data-batches], [data-bound=any | calibrated][data-value],
// .worst[data-ranking] .batch.

import { html, nothing, type PropertyValues } from "lit";
import { property, state as reactive } from "lit/decorators.js";
import { readAddress } from "../address.js";
import { kinshipRing } from "../elements/kinship-ring.js";
import { notice } from "../elements/notice.js";
import { saveChartButtons } from "../elements/save-chart.js";
import { sheet, ShadowElement } from "../elements/shadow.js";
import { toFailure, type Failure } from "../failure.js";
import * as format from "../format.js";
import { relation } from "../kinship.js";
import type { StepDefaults } from "../messages/science.js";
import { loadScience, type Given, type Science } from "../science.js";
import { batchesPart } from "./batches.js";
import { compute, pushFigure, pushText, tiedItems, trained, type Computed } from "./computed.js";
import { DEPTH, LEVELS, LOSS_NAMES, LOSSES, STEP_NAMES, stepSetting, type LossName } from "./losses.js";
import { equations } from "./equations.js";
import { PRESETS, presetOf } from "./presets.js";
import { domainOf, itemText, lineOf, scoreChart } from "./score-chart.js";
import { MOST_ITEMS, parameters, RANGES, stateOf, withPreset, type SettingName, type State } from "./state.js";
import { points, REACH, stepChart } from "./step-chart.js";
import style from "./steps.css";

interface Slider {
  readonly name: SettingName;
  readonly symbol: string;
  readonly says: string;
}

const SLIDERS: readonly { readonly step: string; readonly sliders: readonly Slider[] }[] = [
  {
    step: "Sigmoid σ and upper step H⁻",
    sliders: [{ name: "tau", symbol: "τ", says: "width of the sigmoid" }],
  },
  {
    step: "Upper step H⁻",
    sliders: [
      { name: "delta", symbol: "δ", says: "where the line begins" },
      { name: "rho", symbol: "ρ", says: "slope of the line" },
    ],
  },
  {
    step: "Lower step H⁺",
    sliders: [
      { name: "gamma", symbol: "γ", says: "slope below 0" },
      { name: "nu", symbol: "ν", says: "slope above 0" },
      { name: "mu", symbol: "μ", says: "value just above 0" },
    ],
  },
];

/** The offset of the upper step in the published code of SupAP. */
const PUBLISHED_OFFSET = 1.44;
/** The time from one training step to the next, in milliseconds, and the most steps of one run. */
const PACE_MS = 70;
const MOST_STEPS = 200;
/** A run ends when no score moves by more than this. */
const STILL = 2e-5;
/** The text for screen readers waits until the reader pauses. */
const PAUSE_MS = 350;

export class AkinSteps extends ShadowElement {
  static override styles = [...ShadowElement.styles, sheet(style)];

  /** The first state, as the parameters of an address. Later changes are in `value`. */
  @property() accessor state = "";

  @reactive() private accessor current: State = stateOf(readAddress(parameters, ""));
  @reactive() private accessor science: Science | null = null;
  @reactive() private accessor failed: Failure | null = null;
  @reactive() private accessor selected = presetOf(this.current.preset).item;
  @reactive() private accessor domain: readonly [number, number] = domainOf(this.current.scores);
  @reactive() private accessor trace: readonly (readonly number[])[] = [];
  @reactive() private accessor running = false;
  @reactive() private accessor said = "";
  @reactive() private accessor spoken = "";
  @reactive() private accessor widths = { curves: 640, line: 960 };

  private timer = 0;
  private speaking = 0;
  private readonly sizes = new ResizeObserver((entries) => {
    const widths = { ...this.widths };
    for (const { target, contentRect } of entries) {
      if (contentRect.width === 0) continue;
      widths[target.classList.contains("curves") ? "curves" : "line"] = Math.round(contentRect.width);
    }
    this.widths = widths;
  });

  // --- For the page around it ----------------------------------------------------------------------

  get value(): State {
    return this.current;
  }

  /** Begins anew with a state. */
  set value(state: State) {
    this.stop();
    this.current = state;
    this.domain = domainOf(state.scores);
    this.selected = Math.min(presetOf(state.preset).item, state.scores.length - 1);
    this.trace = [];
    this.said = "";
  }

  override connectedCallback(): void {
    super.connectedCallback();
    loadScience().then(
      (science) => (this.science = science),
      (error: unknown) => (this.failed = toFailure(error)),
    );
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.stop();
    clearTimeout(this.speaking);
    this.sizes.disconnect();
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("state") && this.state !== "") {
      this.value = stateOf(readAddress(parameters, `?${this.state}`));
    }
  }

  protected override updated(): void {
    for (const figure of this.renderRoot.querySelectorAll(".curves, .line")) this.sizes.observe(figure);
  }

  // --- What the reader does ------------------------------------------------------------------------

  private change(values: Partial<State>): void {
    this.current = { ...this.current, ...values };
    this.dispatchEvent(new Event("change", { bubbles: true, composed: true }));
  }

  private say(text: () => string): void {
    clearTimeout(this.speaking);
    this.speaking = window.setTimeout(() => (this.spoken = text()), PAUSE_MS);
  }

  private choosePreset(name: string): void {
    this.value = withPreset(this.current, name);
    this.change({});
    this.say(() => presetOf(name).says);
  }

  private moveItem(item: number, score: number): void {
    this.stop();
    const scores = this.current.scores.with(item, Math.max(-1, Math.min(1, score)));
    const [low, high] = this.domain;
    const moved = scores[item] ?? 0;
    if (moved < low || moved > high) this.domain = domainOf(scores);
    this.trace = [];
    this.said = "";
    this.change({ scores });
  }

  private setLevel(item: number, level: number): void {
    this.trace = [];
    this.change({ levels: this.current.levels.with(item, level) });
    this.say(() => `Item ${item + 1}: ${this.itemText(item)}.`);
  }

  private itemText(item: number): string {
    return this.science ? itemText({ state: this.current, computed: compute(this.science, this.current) }, item) : "";
  }

  private readonly onKey = (item: number, event: KeyboardEvent): void => {
    const { key } = event;
    const score = this.current.scores[item] ?? 0;
    const near = event.shiftKey ? 0.001 : 0.01;
    const by: Readonly<Record<string, number>> = {
      ArrowRight: near,
      ArrowUp: near,
      ArrowLeft: -near,
      ArrowDown: -near,
      PageUp: 0.05,
      PageDown: -0.05,
    };
    const move = by[key];
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (move !== undefined) this.moveItem(item, Number((score + move).toFixed(3)));
    else if (key === "Home" || key === "End") this.moveItem(item, this.domain[key === "Home" ? 0 : 1]);
    else if (/^\d$/.test(key) && Number(key) <= DEPTH) this.setLevel(item, Number(key));
    else return;
    event.preventDefault();
  };

  private readonly onPointer = (item: number, event: PointerEvent): void => {
    if (event.button !== 0) return;
    event.preventDefault();
    const dot = event.currentTarget as SVGElement;
    const chart = dot.closest("svg");
    if (!chart) return;
    dot.focus();
    const { pointerId } = event;
    const [left, right] = lineOf(this.widths.line);
    const [low, high] = this.domain;
    const scoreAt = (x: number) =>
      low + ((x - chart.getBoundingClientRect().left - left) / (right - left)) * (high - low);
    const grabbed = scoreAt(event.clientX) - (this.current.scores[item] ?? 0);
    const done = new AbortController();
    const listen = (type: "pointermove" | "pointerup" | "pointercancel", listener: (event: PointerEvent) => void) =>
      window.addEventListener(type, (moved) => moved.pointerId === pointerId && listener(moved), {
        signal: done.signal,
      });
    listen("pointermove", ({ clientX }) => {
      const score = Math.max(low, Math.min(high, scoreAt(clientX) - grabbed));
      this.moveItem(item, Number(score.toFixed(3)));
    });
    const finish = () => {
      done.abort();
      this.say(() => `Item ${item + 1}: ${this.itemText(item)}.`);
    };
    listen("pointerup", finish);
    listen("pointercancel", finish);
  };

  private addItem(): void {
    const { scores, levels } = this.current;
    const score = Number(((this.domain[0] + this.domain[1]) / 2).toFixed(2));
    this.trace = [];
    this.selected = scores.length;
    this.change({ scores: [...scores, score], levels: [...levels, 0] });
    this.say(() => `Item ${scores.length + 1} is new: ${this.itemText(scores.length)}.`);
  }

  private removeItem(): void {
    const keep = (_: unknown, item: number) => item !== this.selected;
    const { scores, levels } = this.current;
    this.trace = [];
    this.change({ scores: scores.filter(keep), levels: levels.filter(keep) });
    this.say(() => `Item ${this.selected + 1} was removed.`);
    this.selected = Math.min(this.selected, scores.length - 2);
  }

  private setSetting(name: SettingName, value: number): void {
    this.change({ [name]: value === this.defaults()[name] ? null : value });
  }

  // --- Training ------------------------------------------------------------------------------------

  /** One training step. Returns whether any score moved. */
  private step(): boolean {
    if (!this.science) return false;
    const { scores, largest } = trained(this.science, this.current);
    const before = this.trace.length > 0 ? this.trace : [this.current.scores];
    const title = LOSSES[this.current.follow].title;
    if (largest < STILL) {
      this.said = `${title} moves nothing here: its gradient is 0 for every item, or almost.`;
      return false;
    }
    this.trace = [...before, scores];
    const [low, high] = domainOf(scores);
    this.domain = [Math.min(low, this.domain[0]), Math.max(high, this.domain[1])];
    this.said = "";
    this.change({ scores });
    return true;
  }

  private readonly onStep = (): void => {
    this.stop();
    this.step();
    this.say(() => this.said || this.progress());
  };

  private readonly onRun = (): void => {
    if (this.running) {
      this.stop();
      return;
    }
    let left = MOST_STEPS;
    const advance = (): boolean => left-- > 0 && this.step();
    const finish = () => {
      this.stop();
      this.say(() => this.said || this.progress());
    };
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      while (advance());
      finish();
      return;
    }
    this.running = true;
    const tick = () => {
      if (!advance()) finish();
      else this.timer = window.setTimeout(tick, PACE_MS);
    };
    tick();
  };

  private stop(): void {
    clearTimeout(this.timer);
    this.running = false;
  }

  private readonly onReset = (): void => {
    const { losses, follow } = this.current;
    this.value = { ...withPreset(this.current, this.current.preset), losses, follow };
    this.change({});
    this.say(() => "The items are back where they began.");
  };

  /** What the training steps so far have changed. */
  private progress(): string {
    const first = this.trace[0];
    if (!this.science || !first) return "";
    const now = compute(this.science, this.current).scores;
    const then = compute(this.science, { ...this.current, scores: first }).scores;
    const change = (name: string, a?: number | null, b?: number | null) =>
      `${name} ${format.score(a)} → ${format.score(b)}`;
    const steps = format.count(this.trace.length - 1, "step");
    return `After ${steps}: ${change("AP", then.ap[DEPTH - 1], now.ap[DEPTH - 1])}, ${change("H-AP", then.h_ap, now.h_ap)}.`;
  }

  // --- Drawing -------------------------------------------------------------------------------------

  protected override render() {
    if (this.failed) return notice(this.failed, "The steps could not be computed");
    const { science } = this;
    if (!science) return html`<p class="soft placeholder">Loading the steps.</p>`;
    const computed = compute(science, this.current);
    return html`${this.shows("curves") ? this.curves(science) : nothing}
      <section class="part" aria-labelledby="items">
        <h2 id="items">The items of one query</h2>
        <p class="text">
          Every dot is a result, and its ring says how much of its family and species it shares with the query. Move the
          dots. Below, each loss says where it would move them: an arrow shows one move of the training.
        </p>
        ${this.shows("presets") ? this.presets() : nothing} ${this.metrics(computed)}
        ${this.shows("losses") ? this.lossChoice() : nothing}
        <figure class="line" data-hidden=${this.science ? "false" : "true"}>
          ${scoreChart({
            width: this.widths.line,
            state: this.current,
            computed,
            domain: this.domain,
            selected: this.selected,
            trace: this.trace,
            onFocus: (item) => (this.selected = item),
            onKey: this.onKey,
            onPointer: this.onPointer,
          })}
        </figure>
        ${saveChartButtons(() => this.renderRoot.querySelector<SVGSVGElement>("[data-testid=score-chart]"), "gradients")}
        <div class="below">
          ${this.shows("items") ? this.itemEditor(computed) : nothing}
          ${this.shows("training") ? this.training() : nothing}
        </div>
        ${this.shows("numbers") ? this.numbers(computed) : nothing}
        <p class="visually-hidden" role="status">${this.spoken}</p>
      </section>
      ${
        this.shows("batches")
          ? batchesPart(science, this.current.batches, (batches) => this.change({ batches }))
          : nothing
      }`;
  }

  private defaults(): Record<SettingName, number> {
    const { upper, lower } = this.science?.stepDefaults() ?? NO_DEFAULTS;
    return {
      tau: upper.temperature ?? 0,
      rho: upper.slope ?? 0,
      delta: upper.threshold ?? 0,
      gamma: lower.leak ?? 0,
      nu: lower.slope ?? 0,
      mu: lower.start ?? 0,
    };
  }

  private curves(science: Science) {
    const { current, selected } = this;
    const { delta, mu, nu } = { ...this.defaults(), ...present(current) };
    const at = points([delta, nu > 0 ? (1 - mu) / nu : 0]);
    const curve = (name: (typeof STEP_NAMES)[number]) =>
      [name, science.stepCurve(stepSetting(name, current), at)] as const;
    const own = current.scores[selected] ?? 0;
    const marks = current.scores
      .map((score, item) => ({ t: score - own, item }))
      .filter(({ item }) => item !== selected);
    return html`<section class="part" aria-labelledby="steps">
      <h2 id="steps">The steps</h2>
      <p class="text">
        The rank of an item is 1 plus the number of items above it. So each other item adds a step: 0 where its score is
        lower, 1 where it is higher. The step has no slope, and nothing can be learned from it. A loss puts a smooth
        step in its place, and the slope of that step is all that training feels.
      </p>
      <div class="side">
        <div>
          <figure class="curves">
            ${stepChart({
              width: this.widths.curves,
              points: at,
              curves: Object.fromEntries(STEP_NAMES.map(curve)) as Parameters<typeof stepChart>[0]["curves"],
              marks,
            })}
          </figure>
          ${
            marks.some(({ t }) => Math.abs(t) <= REACH)
              ? html`<p class="note">
                  The marks below the axis are the other items, as item ${selected + 1} sees them.
                </p>`
              : nothing
          }
          ${saveChartButtons(() => this.renderRoot.querySelector<SVGSVGElement>("[data-testid=step-chart]"), "steps")}
        </div>
        ${this.shows("sliders") ? this.sliders() : nothing}
      </div>
      ${this.shows("equations") ? equations() : nothing}
    </section>`;
  }

  private sliders() {
    const { current } = this;
    const defaults = this.defaults();
    const slider = ({ name, symbol, says }: Slider) => {
      const value = current[name] ?? defaults[name];
      return html`<label class="slider">
        <span><i>${symbol}</i> ${says}</span>
        <output>${value}</output>
        <input
          type="range"
          data-setting=${name}
          min=${RANGES[name].min}
          max=${RANGES[name].max}
          step=${RANGES[name].step}
          .value=${String(value)}
          @input=${(event: Event) => this.setSetting(name, (event.target as HTMLInputElement).valueAsNumber)}
        />
      </label>`;
    };
    const check = (name: string, label: string, checked: boolean, set: (on: boolean) => void) =>
      html`<label class="check">
        <input
          type="checkbox"
          data-setting=${name}
          .checked=${checked}
          @change=${(event: Event) => set((event.target as HTMLInputElement).checked)}
        />
        <span>${label}</span>
      </label>`;
    const changed = current.atZero || current.offset !== null || Object.keys(present(current)).length > 0;
    return html`<div class="sliders">
      ${SLIDERS.map(
        ({ step, sliders }) =>
          html`<fieldset>
            <legend>${step}</legend>
            ${sliders.map(slider)}
          </fieldset>`,
      )}
      <fieldset>
        <legend>Where paper and code differ</legend>
        ${check("at0", "A tie, t = 0, is above (the papers’ second line)", current.atZero, (atZero) => this.change({ atZero }))}
        ${check("offset", "The line of the upper step begins at 1.44 (published code)", current.offset !== null, (on) =>
          this.change({ offset: on ? PUBLISHED_OFFSET : null }),
        )}
      </fieldset>
      <button
        type="button"
        class="quiet"
        ?disabled=${!changed}
        @click=${() =>
          this.change({
            tau: null,
            rho: null,
            delta: null,
            offset: null,
            gamma: null,
            nu: null,
            mu: null,
            atZero: false,
          })}
      >
        The papers’ settings
      </button>
    </div>`;
  }

  private presets() {
    const { preset } = this.current;
    return html`<div class="presets" role="group" aria-label="Examples">
        ${PRESETS.map(
          ({ name, title }) =>
            html`<button
              type="button"
              class="chip"
              data-preset=${name}
              aria-pressed=${name === preset ? "true" : "false"}
              @click=${() => this.choosePreset(name)}
            >
              ${title}
            </button>`,
        )}
      </div>
      <p class="says" data-testid="says">${presetOf(preset).says}</p>`;
  }

  /** The exact scores of the order. */
  private metrics(computed: Computed) {
    const { scores } = computed;
    const tied = tiedItems(computed).map((item) => item + 1);
    const one = (metric: string, title: string, value: number | null | undefined) =>
      html`<div>
        <dt>${title}</dt>
        <dd data-metric=${metric} data-value=${value ?? ""}>${format.score(value)}</dd>
      </div>`;
    return html`<dl class="metrics">
        ${one("ap", "AP, species", scores.ap[DEPTH - 1])} ${one("coarse-ap", "AP, family", scores.ap[0])}
        ${one("h-ap", "H-AP", scores.h_ap)}
      </dl>
      <p class="note" data-testid="tied">
        ${tied.length > 0 ? `Items ${tied.slice(0, -1).join(", ")} and ${tied.at(-1) ?? ""} have equal scores with others. AP and H-AP count such items in their worst order.` : html`&nbsp;`}
      </p>`;
  }

  private lossChoice() {
    const { losses } = this.current;
    const toggle = (name: LossName) => {
      const shown = LOSS_NAMES.filter((other) => losses.includes(other) !== (other === name));
      this.change({ losses: shown });
    };
    return html`<fieldset class="losses">
      <legend>Losses</legend>
      ${LOSS_NAMES.map((name) => {
        const shown = losses.includes(name);
        return html`<label class="check">
          <input
            type="checkbox"
            data-choice=${name}
            .checked=${shown}
            ?disabled=${shown && losses.length === 1}
            @change=${() => toggle(name)}
          />
          <span>${LOSSES[name].title}</span>
        </label>`;
      })}
    </fieldset>`;
  }

  private itemEditor(computed: Computed) {
    const { selected, current } = this;
    const level = current.levels[selected] ?? 0;
    const pushes = computed.losses.map(
      ({ name, push }) => `${pushText(push[selected] ?? 0)} under ${LOSSES[name].title}`,
    );
    const quotient = computed.losses
      .find(({ name }) => name === "hap_surrogate_text")
      ?.quotients.find(({ item }) => item === selected);
    return html`<div class="editor" role="group" aria-label="Item ${selected + 1}">
      <h3>Item ${selected + 1}</h3>
      <p data-testid="sentence">
        Item ${selected + 1} scores ${format.score(current.scores[selected])} and has rank ${computed.ranks[selected]}.
        It gets pushed
        ${pushes.join(", ")}.${
          quotient
            ? html` Its smooth H-rank is
                <span data-testid="h-rank" data-value=${quotient.above}>${format.decimals(quotient.above, 2)}</span>.`
            : nothing
        }
      </p>
      <fieldset class="levels">
        <legend class="visually-hidden">What it shares with the query</legend>
        ${[...Array(DEPTH + 1).keys()].reverse().map(
          (value) =>
            html`<label class="check">
              <input
                type="radio"
                name="level"
                value=${value}
                .checked=${value === level}
                @change=${() => this.setLevel(selected, value)}
              />
              ${kinshipRing(value, DEPTH)}<span>${relation(value, LEVELS)}</span>
            </label>`,
        )}
      </fieldset>
      <p class="actions">
        <button
          type="button"
          class="quiet"
          data-do="add"
          ?disabled=${current.scores.length >= MOST_ITEMS}
          @click=${this.addItem}
        >
          Add an item
        </button>
        <button
          type="button"
          class="quiet"
          data-do="remove"
          ?disabled=${current.scores.length <= 2}
          @click=${this.removeItem}
        >
          Remove item ${selected + 1}
        </button>
      </p>
      <p class="note">
        Keys on a dot: arrows move it by 0.01, with Shift by 0.001, page keys by 0.05; 0 to ${DEPTH} set what it shares.
      </p>
    </div>`;
  }

  private training() {
    const { follow, rate } = this.current;
    return html`<div class="training" role="group" aria-label="Training steps">
      <h3>Follow a loss</h3>
      <label class="field">
        <span>Loss</span>
        <select
          data-setting="follow"
          @change=${(event: Event) => {
            const { value } = event.target as HTMLSelectElement;
            const found = LOSS_NAMES.find((name) => name === value);
            if (found) this.change({ follow: found });
            this.trace = [];
          }}
        >
          ${LOSS_NAMES.map((name) => html`<option value=${name} ?selected=${name === follow}>${LOSSES[name].title}</option>`)}
        </select>
      </label>
      <p class="note">${LOSSES[follow].says}</p>
      <label class="slider">
        <span>Length of a step: <i>η</i> times the push</span>
        <output>${rate}</output>
        <input
          type="range"
          data-setting="rate"
          min="0.001"
          max="0.05"
          step="0.001"
          .value=${String(rate)}
          @input=${(event: Event) => this.change({ rate: (event.target as HTMLInputElement).valueAsNumber })}
        />
      </label>
      <p class="actions">
        <button type="button" class="button" data-do="step" @click=${this.onStep}>One step</button>
        <button type="button" class="button" data-do="run" @click=${this.onRun}>
          ${this.running ? "Stop" : "Run"}
        </button>
        <button type="button" class="quiet" data-do="reset" @click=${this.onReset}>Reset the items</button>
      </p>
      <p class="progress" data-testid="progress">${this.progress()} ${this.said}</p>
    </div>`;
  }

  private numbers({ losses }: Computed) {
    const { scores, levels } = this.current;
    return html`<details class="numbers">
      <summary>All pushes as numbers</summary>
      <div class="scroll" tabindex="0" role="region" aria-label="All pushes as numbers">
        <table>
          <thead>
            <tr>
              <th scope="col">Item</th>
              <th scope="col">Shares</th>
              <th scope="col">Score</th>
              ${losses.map(({ name }) => html`<th scope="col">${LOSSES[name].title}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${scores.map(
              (score, item) =>
                html`<tr>
                  <th scope="row">${item + 1}</th>
                  <td>${relation(levels[item] ?? 0, LEVELS)}</td>
                  <td>${format.score(score).replace("-", "−")}</td>
                  ${losses.map(({ push }) => html`<td>${pushFigure(push[item] ?? 0)}</td>`)}
                </tr>`,
            )}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row" colspan="3">Loss</th>
              ${losses.map(({ value }) => html`<td>${format.score(value)}</td>`)}
            </tr>
          </tfoot>
        </table>
      </div>
      <p class="note">A push is −∂L/∂s: above 0 the score rises, below 0 it falls.</p>
    </details>`;
  }
}

const NO_DEFAULTS: { [Step in keyof StepDefaults]: Given<StepDefaults[Step]> } = { upper: {}, lower: {} };

/** The settings that the reader has changed. */
function present({ tau, rho, delta, gamma, nu, mu }: State): Partial<Record<SettingName, number>> {
  const all = { tau, rho, delta, gamma, nu, mu };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
}

if (!customElements.get("akin-steps")) customElements.define("akin-steps", AkinSteps);
