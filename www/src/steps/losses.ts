// The losses that are compared, and the settings of the steps that they are made of.

import type { LowerStepSettings, QueryLossSetting, ScoreSettings, StepSetting, UpperStepSettings } from "../science.js";
import type { State } from "./state.js";

export const LOSS_NAMES = ["smooth_ap", "sup_ap", "roadmap", "hap_surrogate", "hap_surrogate_constant"] as const;
export type LossName = (typeof LOSS_NAMES)[number];

export interface LossEntry {
  readonly title: string;
  /** The score that the loss is a stand-in for. */
  readonly metric: "AP" | "H-AP";
  /** One sentence that says which steps it has. */
  readonly says: string;
}

export const LOSSES: Readonly<Record<LossName, LossEntry>> = {
  smooth_ap: { title: "Smooth-AP", metric: "AP", says: "A sigmoid σ for every step." },
  sup_ap: {
    title: "SupAP",
    metric: "AP",
    says: "H⁻ for strangers; the true step H, without a slope, among items of the query’s own species.",
  },
  roadmap: {
    title: "ROADMAP",
    metric: "AP",
    says: "Half SupAP, half calibration: its own species should score above 0.9, all others below 0.6.",
  },
  hap_surrogate: {
    title: "H-AP surrogate",
    metric: "H-AP",
    says: "HAPPIER as its paper has it: H⁻ in the rank, H⁺ in the H-rank.",
  },
  hap_surrogate_constant: {
    title: "H-AP surrogate, constant H-rank",
    metric: "H-AP",
    says: "HAPPIER as its published code runs: H⁻ in the rank, and an H-rank without a slope.",
  },
};

/** L of the items on the score line. */
export const DEPTH = 2;
export const LEVELS = ["family", "species"] as const;

const relevance = { kind: "hierarchical_ap", alpha: 1 } as const;

/** Equal scores count against the query. */
export const SCORING: ScoreSettings = { relevance, ties: "pessimistic", count_query: false };

/** The settings of H⁻; those that are left out are core's defaults. */
const upperStep = ({ tau, rho, delta, offset, atZero }: State): UpperStepSettings => ({
  ...(tau !== null && { temperature: tau }),
  ...(rho !== null && { slope: rho }),
  ...(delta !== null && { threshold: delta }),
  ...(offset !== null && { offset }),
  start_at_zero: atZero,
});

/** The settings of H⁺. */
const lowerStep = ({ gamma, nu, mu, atZero }: State): LowerStepSettings => ({
  ...(gamma !== null && { leak: gamma }),
  ...(nu !== null && { slope: nu }),
  ...(mu !== null && { start: mu }),
  start_at_zero: atZero,
});

const sigmoid = ({ tau }: State) => (tau === null ? {} : { temperature: tau });

export function lossSetting(name: LossName, state: State): QueryLossSetting {
  const surrogate = {
    kind: "hap_surrogate",
    relevance,
    upper_step: upperStep(state),
    lower_step: lowerStep(state),
  } as const;
  switch (name) {
    case "smooth_ap":
      return { kind: "smooth_ap", ...sigmoid(state) };
    case "sup_ap":
      return { kind: "sup_ap", step: upperStep(state) };
    case "roadmap":
      return { kind: "roadmap", sup_ap: { step: upperStep(state) } };
    case "hap_surrogate":
      return surrogate;
    case "hap_surrogate_constant":
      return { ...surrogate, smooth_rank: false };
  }
}

export const STEP_NAMES = ["heaviside", "sigmoid", "upper", "lower"] as const;
export type StepName = (typeof STEP_NAMES)[number];

export function stepSetting(name: StepName, state: State): StepSetting {
  switch (name) {
    case "heaviside":
      return { kind: "heaviside" };
    case "sigmoid":
      return { kind: "sigmoid", ...sigmoid(state) };
    case "upper":
      return { kind: "upper", ...upperStep(state) };
    case "lower":
      return { kind: "lower", ...lowerStep(state) };
  }
}
