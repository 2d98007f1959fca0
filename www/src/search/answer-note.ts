import { html, nothing } from "lit";
import type { Collection } from "../collection.js";
import type { Answered, Certain } from "../messages/engine.js";

/** How far the votes of an encoder hold. */
export interface Held {
  readonly encoder: string;
  /** At each promise; `null` where the gallery has no calibration. */
  readonly answers: readonly Answered[] | null;
}

/** The promise that the page starts with. */
export const PROMISE = 0.95;

/** What may be said of the reader's picture, what is probable, and the neighbours that speak for both. */
export function answerNote(
  held: readonly Held[],
  collection: Collection,
  promise: number,
  choose: (promise: number) => void,
) {
  if (held.length === 0) return nothing;
  if (held.every(({ answers }) => answers === null)) {
    return html`<p class="soft held-note" data-testid="no-calibration">
      How far these votes hold was not measured: this gallery has no calibration.
    </p>`;
  }
  const promises = held.flatMap(({ answers }) => answers ?? []).map((answered) => answered.promise);
  const take = (event: Event) => choose(Number((event.target as HTMLSelectElement).value));
  return html`<div class="held">
    ${held.map(({ encoder, answers }) => {
      const found = answers?.find((answered) => answered.promise === promise);
      return found ? said(encoder, found, collection, held.length > 1) : nothing;
    })}
    <label class="soft held-note">
      Of the answers that are sure, at least
      <select data-testid="promise" @change=${take}>
        ${[...new Set(promises)].map((share) => html`<option value=${share} ?selected=${share === promise}>${whole(share)}</option>`)}
      </select>
      are right, for pictures like those of the gallery.
    </label>
  </div>`;
}

function said(
  encoder: string,
  { answer, probable, speakers, voters, promise }: Answered,
  collection: Collection,
  named: boolean,
) {
  const name = ({ level, class: id }: Certain) => collection.className(level, id);
  const sure = answer.levels.slice(0, answer.reached);
  const last = sure.at(-1);
  const count = ({ level }: Certain) => speakers[level - 1] ?? 0;
  const speak = [last, probable].flatMap((certain) => (certain ? [`${count(certain)} are ${name(certain)}`] : []));
  return html`<div data-testid="answer" data-encoder=${encoder} data-reached=${answer.reached} data-promise=${promise}>
    <p class="held-text">
      ${named ? html`<span class="soft">${encoder}:</span> ` : nothing}${
        sure.length > 0
          ? html`Surely <strong>${sure.map(name).join(" › ")}</strong>${probable ? "; probably " : "."}`
          : probable
            ? html`Nothing is sure; probably `
            : html`Nothing is sure.`
      }${probable ? html`${name(probable)} (${whole(probable.certainty)}).` : nothing}
    </p>
    <p class="soft held-note">
      Of the ${voters} nearest pictures,
      ${speak.join(" and ")}.${
        answer.possible
          ? nothing
          : ` The gallery is too small, or too hard, to be sure of anything at ${whole(promise)}.`
      }
    </p>
  </div>`;
}

/** A share in percent, rounded down, so that 99.6 % is not called 100 %. */
const whole = (share: number) => `${Math.floor(share * 100 + 1e-9)} %`;
