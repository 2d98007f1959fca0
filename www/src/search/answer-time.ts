import { html } from "lit";
import { closePopUp } from "../elements/pop-up.js";
import * as format from "../format.js";

/** Where the time of an answer went, in milliseconds, over all encoders shown. What was known already takes no time. */
export interface Parts {
  /** From the bytes of a picture to its pixels. */
  decoding: number;
  /** From the pixels to the embedding. */
  network: number;
  /** From the embedding to the ranked results and their scores. */
  search: number;
  /** From the results to what the reader sees. */
  drawing: number;
}

/** `whole`: from the choice of the query until its results are drawn. */
export type Timing = Parts & { whole: number };

/** The time of the whole answer, and on demand its parts. */
export function answerTime({ whole, decoding, network, search, drawing }: Timing) {
  const parts = { ...(network > 0 && { decoding, network }), search, drawing };
  const rest = whole - Object.values(parts).reduce((sum, ms) => sum + ms, 0);
  return html`<details class="answer-time" data-testid="time" @keydown=${closePopUp} @focusout=${closePopUp}>
    <summary>
      <span class="soft">Answered in</span>
      <span class="number pop-up-name" data-timing="whole" data-value=${whole}>${format.milliseconds(whole)}</span>
    </summary>
    <div class="pop-up">
      <p>From the choice of the query until its results are drawn:</p>
      <table class="number">
        ${Object.entries({ ...parts, rest }).map(
          ([name, ms]) =>
            html`<tr data-timing=${name} data-value=${ms}>
              <th scope="row">${NAMES[name] ?? name}</th>
              <td>${format.milliseconds(ms)}</td>
            </tr>`,
        )}
      </table>
    </div>
  </details>`;
}

const NAMES: Readonly<Record<string, string>> = { rest: "reading, messages and waiting" };
