// The losses that are compared, and the settings of the steps that they are made of.

import type { LowerStep, QueryLossSetting, ScoreSettings, StepSetting, UpperStep } from "../messages/science.js";
import type { Given } from "../science.js";

export const LOSS_NAMES = ["smooth_ap", "sup_ap", "roadmap", "hap_surrogate", "hap_surrogate_text"] as const;
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
    says: "The upper step for strangers; the true step, without a slope, among items of the query’s own species.",
  },
  roadmap: {
    title: "ROADMAP",
    metric: "AP",
    says: "Half SupAP, half calibration: its own species should score above 0.9, all others below 0.6.",
  },
  hap_surrogate: {
    title: "H-AP surrogate",
    metric: "H-AP",
    says: "HAPPIER as its published code runs: the upper step in the rank, and an H-rank without a slope.",
  },
  hap_surrogate_text: {
    title: "H-AP surrogate (text)",
    metric: "H-AP",
    says: "HAPPIER as its paper has it: the upper step in the rank, the lower step in the H-rank.",
  },
};

/** L of the items on the score line. */
export const DEPTH = 2;
export const LEVELS = ["family", "species"] as const;

/** What the reader can set of the steps. Null is core's default. */
export interface StepSettings {
  readonly tau: number | null;
  readonly rho: number | null;
  readonly delta: number | null;
  readonly offset: number | null;
  readonly gamma: number | null;
  readonly nu: number | null;
  readonly mu: number | null;
  /** Whether both steps start at t = 0, as the papers’ second lines say. */
  readonly atZero: boolean;
}

const relevance = { kind: "hierarchical_ap", alpha: 1 } as const;

/** Equal scores count against the query. */
export const SCORING: ScoreSettings = { relevance, ties: "pessimistic", count_query: false };

/** The settings of the upper step; those that are left out are core's defaults. */
const upperStep = ({ tau, rho, delta, offset, atZero }: StepSettings): Given<UpperStep> => ({
  ...(tau !== null && { temperature: tau }),
  ...(rho !== null && { slope: rho }),
  ...(delta !== null && { threshold: delta }),
  ...(offset !== null && { offset }),
  start_at_zero: atZero,
});

/** The settings of the lower step. */
const lowerStep = ({ gamma, nu, mu, atZero }: StepSettings): Given<LowerStep> => ({
  ...(gamma !== null && { leak: gamma }),
  ...(nu !== null && { slope: nu }),
  ...(mu !== null && { start: mu }),
  start_at_zero: atZero,
});

const sigmoid = ({ tau }: StepSettings) => (tau === null ? {} : { temperature: tau });

export function lossSetting(name: LossName, settings: StepSettings): Given<QueryLossSetting> {
  const surrogate = {
    kind: "hap_surrogate",
    relevance,
    // Without an offset the step is continuous, as it is drawn.
    upper_step: { ...upperStep(settings), offset: settings.offset },
    lower_step: lowerStep(settings),
  } as const;
  switch (name) {
    case "smooth_ap":
      return { kind: "smooth_ap", ...sigmoid(settings) };
    case "sup_ap":
      return { kind: "sup_ap", step: upperStep(settings) };
    case "roadmap":
      return { kind: "roadmap", sup_ap: { step: upperStep(settings) } };
    case "hap_surrogate":
      return { ...surrogate, smooth_rank: false };
    case "hap_surrogate_text":
      return { ...surrogate, smooth_rank: true };
  }
}

export const STEP_NAMES = ["heaviside", "sigmoid", "upper", "lower"] as const;
export type StepName = (typeof STEP_NAMES)[number];

export function stepSetting(name: StepName, settings: StepSettings): Given<StepSetting> {
  switch (name) {
    case "heaviside":
      return { kind: "heaviside" };
    case "sigmoid":
      return { kind: "sigmoid", ...sigmoid(settings) };
    case "upper":
      return { kind: "upper", ...upperStep(settings) };
    case "lower":
      return { kind: "lower", ...lowerStep(settings) };
  }
}
