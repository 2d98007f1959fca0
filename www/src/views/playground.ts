import { html, nothing, render } from "lit";
import { text, type Parameter } from "../address.js";
import { onLastRankings, playgroundAddress, readLastRankings, type LastRanking } from "../last-ranking.js";
import "../playground/akin-playground.js";
import type { AkinPlayground } from "../playground/akin-playground.js";
import { PARAMETERS, parseState, printState, type Parameters } from "../playground/parameters.js";
import { orderLevels, type State } from "../playground/state.js";
import { defineView } from "./view.js";

type Name = (typeof PARAMETERS)[number];

const parameters = Object.fromEntries(PARAMETERS.map((name) => [name, text("")])) as Record<Name, Parameter<string>>;

const readState = (values: Parameters): State => parseState((name) => values[name] || null);

const writeState = (state: State): Record<Name, string> => {
  const printed = printState(state);
  return Object.fromEntries(PARAMETERS.map((name) => [name, printed[name] ?? ""])) as Record<Name, string>;
};

/** The reader's own ranking that a state shows, if it does. */
const ownRanking = (state: State): LastRanking | undefined =>
  readLastRankings().find(
    ({ levels, shared }) =>
      shared.join() === orderLevels(state, 0).join() && levels.join() === state.tree.levels.join(),
  );

/** A ranked list to be moved by hand, and what the scores make of it. */
export const view = defineView({
  parameters,
  open({ root, address }) {
    let own: LastRanking | undefined;
    const changed = (event: Event) => {
      address.set(writeState((event.target as AkinPlayground).value));
      draw();
    };
    const draw = () => {
      const hide = address.values.hide.join(" ");
      const rankings = readLastRankings();
      render(
        html`<header class="view-head">
            <h1>The playground</h1>
            <p class="lede">
              Move the results of a search, and watch what two scores make of it. AP knows only right and wrong.
              <span class="nowrap">H-AP</span> also sees how close a wrong result is.
            </p>
            ${own ? html`<p class="soft" data-testid="own">${about(own)}</p>` : nothing}
          </header>
          <akin-playground hide=${hide} @change=${changed}>
            ${rankings.map(
              (ranking) =>
                html`<a slot="presets" class="quiet" data-own=${ranking.encoder} href=${playgroundAddress(ranking)}>
                  Your search: ${ranking.query}, by ${ranking.encoder}
                </a>`,
            )}
          </akin-playground>`,
        root,
      );
    };
    const start = () => {
      const state = readState(address.values);
      own = ownRanking(state);
      draw();
      root.querySelector("akin-playground")?.start(state, own?.names, own?.query);
    };
    start();
    address.onRestore(start);
    onLastRankings(draw);
  },
});

const about = ({ query, encoder, shared, of }: LastRanking): string =>
  `The first ${shared.length} of ${of} results for ${query}, as ${encoder} ranked them. The scores here count only these.`;
