// How relevance, weights and ties are set.

import { html, nothing, type TemplateResult } from "lit";
import type { Relevance, TiePolicy } from "../messages/science.js";
import { hasTies, MAX_ALPHA, removeTies, type State } from "./state.js";

export interface ControlsView {
  state: State;
  /** Whether the kind of relevance can be chosen, or α alone. */
  kinds: boolean;
  /** Whether there is a part for ties. */
  ties: boolean;
  tying: boolean;
  edit(what: string, state: State): void;
  setTying(on: boolean): void;
}

const POWER = html`(l / L)<sup>α</sup>`;

const RELEVANCES: readonly { kind: Relevance["kind"]; name: TemplateResult; says: string }[] = [
  { kind: "plain", name: POWER, says: "depends on the shared level alone, as in the paper’s figures" },
  {
    kind: "hierarchical_ap",
    name: html`${POWER} / |Ω(l)|`,
    says: "shared out among the items of a level: H-AP as papers report it (eq. 4)",
  },
  { kind: "weighted_ap", name: html`Σ wAP`, says: "makes H-AP a weighted mean of the APs of all levels" },
];

const POLICIES: readonly { policy: TiePolicy; name: string; says: string }[] = [
  { policy: "stable", name: "as listed", says: "Tied items count in the order of the list." },
  { policy: "optimistic", name: "best first", says: "Tied items count in their best order." },
  { policy: "pessimistic", name: "worst first", says: "Tied items count in their worst order." },
  {
    policy: "strict",
    name: "not above each other",
    says: "Tied items share the rank of the first; the step H(0) is 0.",
  },
  {
    policy: "shared",
    name: "above each other",
    says: "Tied items share the rank of the last, as in scikit-learn; the step H(0) is 1.",
  },
];

export function controls({ state, kinds, ties, tying, edit, setTying }: ControlsView) {
  return html`<div class="controls" data-testid="controls">
    <fieldset>
      <legend>Relevance: what is a cousin worth?</legend>
      ${kinds ? relevanceKinds({ state, edit }) : nothing}
      ${state.relevance === "weighted_ap" ? weights({ state, edit }) : alpha({ state, edit })}
      ${kinds && state.relevance === "hierarchical_ap" ? countQuery({ state, edit }) : nothing}
    </fieldset>
    ${ties ? tieControls({ state, tying, edit, setTying }) : nothing}
  </div>`;
}

interface Edit {
  state: State;
  edit: ControlsView["edit"];
}

const relevanceKinds = ({ state, edit }: Edit) =>
  RELEVANCES.map(
    ({ kind, name, says }) =>
      html`<label class="choice">
        <input
          type="radio"
          name="relevance"
          value=${kind}
          .checked=${state.relevance === kind}
          @change=${() => edit(`The relevance is of another kind: it ${says}.`, { ...state, relevance: kind })}
        />
        <span><span class="number">${name}</span> <span class="says">${says}</span></span>
      </label>`,
  );

const countQuery = ({ state, edit }: Edit) =>
  html`<label class="choice">
    <input
      type="checkbox"
      name="count"
      .checked=${state.countQuery}
      @change=${() => edit(state.countQuery ? "The query no longer counts in |Ω(L)|." : "The query counts in |Ω(L)|.", { ...state, countQuery: !state.countQuery })}
    />
    <span>count the query in |Ω(L)| <span class="says">as the published numbers do</span></span>
  </label>`;

function tieControls({ state, edit, tying, setTying }: Edit & Pick<ControlsView, "tying" | "setTying">) {
  const policy = POLICIES.find(({ policy }) => policy === state.ties);
  const choose = (event: Event) => {
    const chosen = POLICIES[(event.target as HTMLSelectElement).selectedIndex];
    if (chosen) edit(chosen.says, { ...state, ties: chosen.policy });
  };
  return html`<fieldset>
    <legend>Ties: items with the same score</legend>
    <label class="choice">
      <input type="checkbox" name="tying" .checked=${tying} @change=${() => setTying(!tying)} />
      <span>glue neighbours together <span class="says">with the buttons between the ranks</span></span>
    </label>
    <label class="field">
      Tied items count
      <select name="policy" @change=${choose}>
        ${POLICIES.map(({ policy, name }) => html`<option value=${policy} ?selected=${policy === state.ties}>${name}</option>`)}
      </select>
    </label>
    <p class="says">${policy?.says}</p>
    <button
      type="button"
      class="quiet"
      ?disabled=${!hasTies(state)}
      @click=${() => edit("No items are tied any more.", removeTies(state))}
    >
      Part all ties
    </button>
  </fieldset>`;
}

function alpha({ state, edit }: Edit) {
  const says =
    state.alpha === 0
      ? "all kin count alike"
      : state.alpha < 1
        ? "cousins count almost as much"
        : state.alpha === 1
          ? "each level counts by its depth"
          : "only near kin count much";
  return html`<label class="slider">
    <span>α <output class="number">${state.alpha.toFixed(1)}</output> <span class="says">${says}</span></span>
    <input
      type="range"
      name="alpha"
      min="0"
      max=${MAX_ALPHA}
      step="0.1"
      .value=${String(state.alpha)}
      @input=${(event: Event) => {
        const value = Number((event.target as HTMLInputElement).value);
        edit(`α is ${value.toFixed(1)}.`, { ...state, alpha: value });
      }}
    />
  </label>`;
}

function weights({ state, edit }: Edit) {
  return state.tree.levels.map(
    (name, index) =>
      html`<label class="slider">
        <span
          >w<sub>${index + 1}</sub> <output class="number">${(state.weights[index] ?? 0).toFixed(1)}</output>
          <span class="says">of AP ${name}</span></span
        >
        <input
          type="range"
          name=${`weight-${index + 1}`}
          min="0"
          max="5"
          step="0.1"
          .value=${String(state.weights[index] ?? 0)}
          @input=${(event: Event) => {
            const changed = state.weights.with(index, Number((event.target as HTMLInputElement).value));
            // Without any weight there is nothing to average.
            if (changed.some((weight) => weight > 0))
              edit(`The weight of ${name} is ${(changed[index] ?? 0).toFixed(1)}.`, { ...state, weights: changed });
          }}
        />
      </label>`,
  );
}
