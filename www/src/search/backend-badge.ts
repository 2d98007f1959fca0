import { html, nothing } from "lit";
import { closePopUp } from "../elements/pop-up.js";
import * as format from "../format.js";
import type { Backend, Running } from "../protocol.js";
import type { Adapter } from "../messages/engine.js";

/** The back ends by the names that people know. */
export const BACKENDS: Record<Backend, string> = { webgpu: "WebGPU", cpu: "CPU" };

/** The back end that runs, and on demand the reason. */
export function backendBadge(running: Running, change: (backend: Backend) => void) {
  const other: Backend = running.backend === "cpu" ? "webgpu" : "cpu";
  return html`<div class="backend" data-testid="backend" data-backend=${running.backend}>
    <details @keydown=${closePopUp} @focusout=${closePopUp}>
      <summary>
        <span class="visually-hidden">Runs on </span><span class="pop-up-name">${BACKENDS[running.backend]}</span>
      </summary>
      <div class="pop-up">
        <p data-testid="backend-reason">${running.reason}</p>
        ${running.adapter ? html`<p class="soft" data-testid="adapter">${describe(running.adapter)}</p>` : nothing}
        <button type="button" class="quiet" @click=${() => change(other)}>Use ${BACKENDS[other]} instead</button>
      </div>
    </details>
  </div>`;
}

const describe = ({ name, software, largest_buffer, half_precision }: Adapter): string =>
  [
    `Adapter: ${name === "" ? "not named by the browser" : name}${software ? ", in software" : ""}.`,
    `Buffers of up to ${format.bytes(largest_buffer)},`,
    `${half_precision ? "with" : "without"} numbers of 16 bits.`,
  ].join(" ");
