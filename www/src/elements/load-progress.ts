import { html, nothing } from "lit";
import type { PhaseProgress } from "../client.js";
import * as format from "../format.js";
import { PHASES, type Phase } from "../protocol.js";
import { vars } from "../vars.js";

const PHASE_NAMES: Record<Phase, string> = {
  code: "Engine",
  gallery: "Gallery",
  weights: "Encoder",
  "warm-up": "Warm-up and parity check",
};

/** The progress of loading, phase by phase, in bytes. */
export function loadProgress(phases: ReadonlyMap<Phase, PhaseProgress>) {
  const broken = [...phases.values()].some((at) => at.broken);
  return html`<ol class="phases" data-testid="progress">
      ${PHASES.map((phase) => {
        const at = phases.get(phase);
        const state = !at ? "waiting" : at.done ? "done" : "running";
        const share = !at ? 0 : at.done ? 1 : at.total ? at.loaded / at.total : 0;
        return html`<li data-phase=${phase} data-state=${state} ${vars({ "--share": share })}>
          <span class="phase-name">${PHASE_NAMES[phase]}</span>
          <span class="phase-text number">${phaseText(phase, at)}</span>
          <i class="phase-bar"></i>
        </li>`;
      })}
    </ol>
    <p class="phases-note" role="status" data-testid="broken">
      ${broken ? "The connection broke off. The download goes on by itself." : nothing}
    </p>`;
}

function phaseText(phase: Phase, at: PhaseProgress | undefined): string {
  if (!at) return "waiting";
  if (phase === "warm-up") return at.done ? "passed" : "running";
  if (at.done || at.total === null) return format.bytes(at.loaded);
  return `${format.bytes(at.loaded)} of ${format.bytes(at.total)}`;
}
