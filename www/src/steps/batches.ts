// How far AP of the whole set can be below AP of its batches, and what calibration changes (ROADMAP, equations 8 and 9).

import { html, nothing } from "lit";
import * as format from "../format.js";
import type { Science } from "../science.js";

/** What each batch holds; all hold the same. Each number has one digit, since the address has one digit for each. */
export interface Batches {
  readonly count: number;
  readonly goodPositives: number;
  readonly badPositives: number;
  readonly goodNegatives: number;
  readonly badNegatives: number;
}

export const START: Batches = { count: 4, goodPositives: 3, badPositives: 0, goodNegatives: 3, badNegatives: 1 };

interface Slider {
  readonly name: keyof Batches;
  readonly says: string;
  readonly least: number;
  readonly most: number;
}

const SLIDERS: readonly Slider[] = [
  { name: "count", says: "number of batches", least: 2, most: 8 },
  { name: "goodPositives", says: "of the species, at α or above", least: 0, most: 6 },
  { name: "badPositives", says: "of the species, below α", least: 0, most: 6 },
  { name: "goodNegatives", says: "strangers, at β or below", least: 0, most: 6 },
  { name: "badNegatives", says: "strangers, above β", least: 0, most: 6 },
];

/** The batches of five digits in the order of the sliders; `START` if they are not five or one is out of range. */
export function batchesOf(digits: readonly number[]): Batches {
  const fit = SLIDERS.every(({ least, most }, at) => {
    const digit = digits[at];
    return digit !== undefined && digit >= least && digit <= most;
  });
  if (!fit || digits.length !== SLIDERS.length) return START;
  return Object.fromEntries(SLIDERS.map(({ name }, at) => [name, digits[at]])) as unknown as Batches;
}

/** The digits of batches; none for those at the start. */
export function digitsOf(batches: Batches): number[] {
  const isStart = SLIDERS.every(({ name }) => batches[name] === START[name]);
  return isStart ? [] : SLIDERS.map(({ name }) => batches[name]);
}

export function batchesPart(science: Science, batches: Batches, set: (batches: Batches) => void) {
  const { count, goodPositives, badPositives, goodNegatives, badNegatives } = batches;
  const batch = {
    good_positives: goodPositives,
    bad_positives: badPositives,
    good_negatives: goodNegatives,
    bad_negatives: badNegatives,
  };
  const { any_scores, calibrated } = science.gapBounds(Array.from({ length: count }, () => batch));
  const own = goodPositives + badPositives;
  const strangers = goodNegatives + badNegatives;
  const each = `${format.count(own, "item")} of the species before ${format.count(strangers, "stranger")}`;
  const one = (before: number, after: number) => [
    ...Array<string>(before).fill("own"),
    ...Array<string>(after).fill("stranger"),
  ];
  const repeated = (group: string[]) => Array<string[]>(count).fill(group);
  return html`<section class="part" aria-labelledby="batches">
    <h2 id="batches">Batches and the whole set</h2>
    <p class="text">
      Training ranks one batch at a time, but a search ranks the whole set. Suppose that every batch is perfect: the
      items of the query’s species stand before the strangers, and AP is 1. Ranked together they can still be mixed. No
      batch knows the scores of another, so its strangers may score above the other’s items of the species.
    </p>
    <div class="side">
      <div class="rankings">
        <p class="note">
          The dots are the worst ranking, from its top: filled ones are items of the species, open ones are strangers.
        </p>
        ${ranking({
          name: "any",
          title: "Whatever the scores are",
          loss: any_scores,
          source: "ROADMAP, equation 8",
          groups: repeated(one(own, strangers)),
          label: `The worst ranking: ${format.count(count, "batch", "batches")} one after another, each with ${each}.`,
        })}
        ${ranking({
          name: "calibrated",
          title: "With calibration",
          loss: calibrated,
          source: "ROADMAP, equation 9",
          // With items below α the bound belongs to no ranking.
          groups:
            badPositives > 0 ? null : [...repeated(one(goodPositives, badNegatives)), one(0, count * goodNegatives)],
          label: `The worst ranking: ${count} times ${format.count(goodPositives, "item")} of the species before ${format.count(badNegatives, "stranger")} above β${goodNegatives > 0 ? ", and the other strangers last" : ""}.`,
        })}
        <p class="text">
          Calibration is the second part of ROADMAP’s loss. It asks items of the species for a score of at least α, and
          strangers for at most β, which is lower. Then a stranger that keeps to β never stands before an item that
          keeps to α, whichever batches they are from. Where all items keep to this, AP of the whole set is that of the
          batches.
        </p>
        <p class="note" data-testid="both">
          ${
            calibrated !== null && any_scores !== null && calibrated > any_scores
              ? "Here equation 9 gives the smaller value, although the paper calls it the tighter bound: its first sum does not count the items below α of earlier batches. AP of the whole set is at least both values, so the larger one counts."
              : badPositives > 0
                ? "With items of the species below α, equation 9 is a bound that no ranking may reach, and none is drawn."
                : html`&nbsp;`
          }
        </p>
      </div>
      <div class="sliders">
        <fieldset>
          <legend>Batches, and what each holds</legend>
          ${SLIDERS.map(({ name, says, least, most }) => {
            const value = batches[name];
            return html`<label class="slider">
              <span>${says}</span>
              <output>${value}</output>
              <input
                type="range"
                data-batches=${name}
                min=${least}
                max=${most}
                .value=${String(value)}
                @input=${(event: Event) =>
                  set({ ...batches, [name]: (event.target as HTMLInputElement).valueAsNumber })}
              />
            </label>`;
          })}
        </fieldset>
      </div>
    </div>
  </section>`;
}

interface Ranking {
  readonly name: string;
  readonly title: string;
  /** The largest loss of AP; null without an item of the species. */
  readonly loss: number | null;
  readonly source: string;
  /** The items of the worst ranking, from its top; null where there is none to draw. */
  readonly groups: readonly (readonly string[])[] | null;
  readonly label: string;
}

/** A bound, and the ranking that reaches it. */
function ranking({ name, title, loss, source, groups, label }: Ranking) {
  return html`<div class="ranking">
    <h3>${title}</h3>
    <p class="bound" data-bound=${name} data-value=${loss ?? ""}>
      ${
        loss === null
          ? "Without an item of the species there is no AP."
          : html`AP of the whole set is at least <strong>${format.score(1 - loss)}</strong>
              <span class="soft">(${source})</span>`
      }
    </p>
    ${
      groups && loss !== null
        ? html`<div class="worst" role="img" aria-label=${label} data-ranking=${name}>
            ${groups.map((group) => html`<span class="batch">${group.map((item) => html`<i class=${item}></i>`)}</span>`)}
          </div>`
        : nothing
    }
  </div>`;
}
