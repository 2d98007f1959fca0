import { html, render } from "lit";
import { text, type Parameter } from "../address.js";
import { readLastRankings } from "../last-ranking.js";
import "../playground/akin-playground.js";
import type { AkinPlayground } from "../playground/akin-playground.js";
import { PARAMETERS, parseState, printState, type Parameters } from "../playground/parameters.js";
import { fromLastRanking } from "../playground/presets.js";
import type { State } from "../playground/state.js";
import { defineView } from "./view.js";

type Name = (typeof PARAMETERS)[number];

const parameters = Object.fromEntries(PARAMETERS.map((name) => [name, text("")])) as Record<Name, Parameter<string>>;

const readState = (values: Parameters): State => parseState((name) => values[name] || null);

const writeState = (state: State): Record<Name, string> => {
  const printed = printState(state);
  return Object.fromEntries(PARAMETERS.map((name) => [name, printed[name] ?? ""])) as Record<Name, string>;
};

/** A ranked list to be moved by hand, and what the scores make of it. */
export const view = defineView({
  parameters,
  open({ root, address }) {
    const own = readLastRankings();
    const open = (index: number) => {
      const ranking = own[index];
      const playground = root.querySelector("akin-playground");
      if (!ranking || !playground) return;
      playground.start(fromLastRanking(ranking), ranking.names);
      address.set(writeState(playground.value));
    };
    render(
      html`<header class="view-head">
          <h1>The playground</h1>
          <p class="lede">
            Move the results of a search, and watch what two scores make of it. AP knows only right and wrong.
            <span class="nowrap">H-AP</span> also sees how close a wrong result is.
          </p>
        </header>
        <akin-playground
          hide=${address.values.hide.join(" ")}
          @change=${(event: Event) => address.set(writeState((event.target as AkinPlayground).value))}
        >
          ${own.map(
            ({ encoder, query }, index) =>
              html`<button type="button" slot="presets" class="quiet" data-own=${encoder} @click=${() => open(index)}>
                Your search: ${query}, by ${encoder}
              </button>`,
          )}
        </akin-playground>`,
      root,
    );
    const playground = root.querySelector("akin-playground");
    playground?.start(readState(address.values));
    address.onRestore((values) => playground?.start(readState(values)));
  },
});
