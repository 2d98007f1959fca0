import { html, nothing } from "lit";
import * as format from "../format.js";
import type { Adapter, Backend, Running } from "../protocol.js";

const NAMES: Record<Backend, string> = { webgpu: "WebGPU", cpu: "CPU" };

/** The time of each step of a query in milliseconds; null where a step was not needed. */
export interface Timing {
  decode: number | null;
  embed: number | null;
  search: number;
}

/** The back end that runs, the reason, and the time of each step. */
export function backendBadge(running: Running, timing: Timing | null, change: (backend: Backend) => void) {
  const other: Backend = running.backend === "cpu" ? "webgpu" : "cpu";
  const step = (name: string, ms: number | null) =>
    ms === null
      ? nothing
      : html`<span data-timing=${name} data-value=${ms}
          ><span class="soft">${name}</span> ${format.milliseconds(ms)}</span
        >`;
  return html`<div class="backend" data-testid="backend" data-backend=${running.backend}>
    <details @keydown=${close} @focusout=${close}>
      <summary>
        <span class="visually-hidden">Runs on </span><span class="backend-name">${NAMES[running.backend]}</span>
      </summary>
      <div class="backend-why">
        <p data-testid="backend-reason">${running.reason}</p>
        ${running.adapter ? html`<p class="soft" data-testid="adapter">${describe(running.adapter)}</p>` : nothing}
        <button type="button" class="quiet" @click=${() => change(other)}>Use ${NAMES[other]} instead</button>
      </div>
    </details>
    ${timing ? html`<p class="timing number">${step("decode", timing.decode)}${step("embed", timing.embed)}${step("search", timing.search)}</p>` : nothing}
  </div>`;
}

const describe = ({ name, software, largest_buffer, half_precision }: Adapter): string =>
  [
    `Adapter: ${name === "" ? "not named by the browser" : name}${software ? ", in software" : ""}.`,
    `Buffers of up to ${format.bytes(largest_buffer)},`,
    `${half_precision ? "with" : "without"} numbers of 16 bits.`,
  ].join(" ");

/** Closes the reason on Escape, or when it loses the focus. */
function close(event: KeyboardEvent | FocusEvent): void {
  const details = event.currentTarget as HTMLDetailsElement;
  if (event instanceof KeyboardEvent) {
    if (event.key !== "Escape" || !details.open) return;
    details.querySelector("summary")?.focus();
    details.open = false;
  } else if (event.relatedTarget instanceof Node && !details.contains(event.relatedTarget)) {
    details.open = false;
  }
}
