import { html, nothing } from "lit";
import { differenceText, levelsFurther } from "../elements/difference.js";
import { kinLegend } from "../elements/kin-legend.js";
import * as format from "../format.js";
import { unlikeNote } from "../gallery/unlike-note.js";
import { playgroundAddress, type LastRanking } from "../last-ranking.js";
import { moveFocus } from "../roving.js";
import { session, type OpenBundle } from "../session.js";
import { STRIP, type Answer, type SearchController } from "./controller.js";
import { answerNote } from "./answer-note.js";
import { classFilter } from "./class-filter.js";
import { copyButtons } from "./copy-results.js";
import { codeSquares } from "../elements/code-strip.js";
import { metricTable } from "./metric-table.js";
import { PAGE } from "./parameters.js";
import { queryCard, queryKey, type Query } from "./query-card.js";
import { rankStrip } from "./rank-strip.js";
import { resultCard } from "./result-card.js";

/** The query with the rankings of the encoders shown, and their scores. Calls `choose` with a result that the reader clicks. */
export function answerPanel(search: SearchController, bundle: OpenBundle, choose: (item: number) => void) {
  const { query, answers } = search;
  const { collection, sprites } = bundle;
  if (search.queryFailure && answers.length === 0) return nothing;
  if (!query) {
    return html`<p class="empty">There is no query yet. Drop a picture anywhere on this page, or choose one above.</p>`;
  }
  const votes = answers.flatMap(({ encoder, votes, likeness }) =>
    votes ? [{ encoder: search.encoderName(encoder), votes, unlike: likeness?.unlike ?? false }] : [],
  );
  const isUnknown = query.kind === "image" && !query.labels;
  const found = answers.flatMap(({ encoder, likeness }) =>
    isUnknown && likeness ? [{ encoder: search.encoderName(encoder), likeness }] : [],
  );
  const unlike = unlikeNote(found, search.bundles, search.isOwn ? "" : search.bundlePath, (path) =>
    search.chooseBundle(path),
  );
  const heldBy = answers.flatMap(({ encoder, votes, answers, likeness }) =>
    votes && !likeness?.unlike ? [{ encoder: search.encoderName(encoder), answers }] : [],
  );
  const held = answerNote(heldBy, collection, search.promise, (promise) => search.choosePromise(promise));
  const scores = answers.flatMap(({ encoder, metrics }) =>
    metrics ? [{ encoder: search.encoderName(encoder), metrics }] : [],
  );
  const [first, second] = answers;
  const hasKin = answers.some(({ results }) => results.some(({ shared_level }) => shared_level !== null));
  const chooseResult = (event: Event) => {
    const target = event.target as Element;
    const item = target.closest<HTMLElement>("[data-query-item]")?.dataset["queryItem"];
    if (item !== undefined) choose(Number(item));
    const seen = target.closest<HTMLElement>("[data-look-item]")?.dataset["lookItem"];
    const column = [...(event.currentTarget as Element).querySelectorAll(".ranking")].findIndex((ranking) =>
      ranking.contains(target),
    );
    if (seen !== undefined) search.lookAt({ item: Number(seen), column: Math.max(0, column) });
  };
  return html`<section class="answer" aria-label="Answer" data-columns=${search.encodersShown().length}>
    ${queryCard(query, collection, sprites, votes, unlike, held, (event) => search.setLabels(event.detail))}
    <div
      class="rankings"
      @click=${chooseResult}
      @pointerover=${markPointed}
      @pointerleave=${unmarkPointed}
      @focusin=${markPointed}
      @focusout=${unmarkPointed}
    >
      ${hasKin ? kinLegend(collection) : nothing}
      ${answers.length > 0 ? classFilter(collection, search.classChoice, (choice) => search.chooseClass(choice)) : nothing}
      ${first && second && hasKin ? html`<p class="difference-text" data-testid="difference-text">${differenceText([search.encoderName(first.encoder), search.encoderName(second.encoder)], [first.results, second.results], collection.levels)}</p>` : nothing}
      <div class="columns">
        ${answers.map((answer) => ranking(search, answer, answers.find((other) => other !== answer) ?? null, query, bundle))}
      </div>
      ${moreButton(search, bundle)} ${answers.length > 0 ? copyButtons(search, bundle) : nothing}
    </div>
    <div class="scores">${metricTable(scores, collection.levels)}</div>
  </section>`;
}

function ranking(
  search: SearchController,
  answer: Answer,
  other: Answer | null,
  query: Query,
  { collection, sprites }: OpenBundle,
) {
  const { encoder, results, metrics, codes } = answer;
  const name = search.encoderName(encoder);
  // While a download is only offered, nothing is on its way.
  return html`<section
    class="ranking"
    data-testid="ranking"
    data-encoder=${name}
    data-query=${queryKey(query)}
    aria-busy=${search.busy && session.offer === null}
    aria-label=${`Ranked by ${name}`}
  >
    <header class="ranking-head">
      <div>
        <p class="eyebrow">Ranked by</p>
        <h3>${name}</h3>
      </div>
      ${metrics?.overall["h_ap"] === undefined ? nothing : html`<p class="ranking-score"><span class="soft">H-AP</span> <span class="number">${format.score(metrics.overall["h_ap"])}</span></p>`}
    </header>
    ${results.some(({ shared_level }) => shared_level !== null) ? rankStrip(results.slice(0, STRIP), collection.levels) : nothing}
    ${
      codes
        ? html`<div data-testid="query-code">
            ${codeSquares("The query’s code", codes.query)}
            <p class="soft code-note">
              Results are ranked by how many bits of their code differ. Tall marks are those bits.
            </p>
          </div>`
        : nothing
    }
    ${playgroundLink(search.lastRanking(answer))}
    <ol
      class="results"
      data-testid="results"
      data-encoder=${name}
      aria-label=${`Results of ${name}, best first`}
      @keydown=${moveFocus}
    >
      ${search
        .shownResults(answer)
        .map(({ result, place }) =>
          resultCard(
            result,
            place + 1,
            collection,
            sprites,
            codes && { query: codes.query, result: codes.results[place] ?? "" },
            other ? levelsFurther(results, other.results, place) : 0,
            search.embedsPictures,
          ),
        )}
    </ol>
  </section>`;
}

/** A link that opens the playground with this ranking. */
const playgroundLink = (ranking: LastRanking | null) =>
  ranking === null
    ? nothing
    : html`<p class="to-playground">
        <a href=${playgroundAddress(ranking)} data-testid="to-playground">Take this ranking to the playground</a>
      </p>`;

function moreButton(search: SearchController, { collection }: OpenBundle) {
  const [answer] = search.answers;
  const shown = answer ? search.shownResults(answer).length : 0;
  if (shown < search.k || shown >= collection.pictures - 1) return nothing;
  const showMore = () => search.showMore();
  return html`<p class="more">
    <button type="button" class="button" data-testid="more" ?disabled=${search.busy} @click=${showMore}>
      Show ${PAGE} more
    </button>
  </p>`;
}

/** Marks the item under the pointer in the strip and in the other ranking. */
function markPointed(event: Event): void {
  unmarkPointed(event);
  const pointed = (event.target as Element).closest<HTMLElement>("[data-item], [data-cell]");
  const item = pointed?.dataset["item"] ?? pointed?.dataset["cell"];
  if (item === undefined) return;
  const rankings = event.currentTarget as Element;
  for (const element of rankings.querySelectorAll(`[data-item="${item}"], [data-cell="${item}"]`)) {
    element.classList.add("pointed");
  }
}

function unmarkPointed(event: Event): void {
  for (const element of (event.currentTarget as Element).querySelectorAll(".pointed")) {
    element.classList.remove("pointed");
  }
}
