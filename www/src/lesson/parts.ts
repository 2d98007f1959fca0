// The lesson: nine parts, each with a text, a playground and a task that core's figures check.

import { html, mathml } from "lit";
import * as format from "../format.js";
import { readLastRankings } from "../last-ranking.js";
import { short } from "../playground/explain.js";
import { FIG_8, fromLastRanking } from "../playground/presets.js";
import { depth, fromLevels, orderLevels, ranking, settings } from "../playground/state.js";
import { bestGain, fineAp, isOneMove, near, notYet, solved, type Part, type Work } from "./work.js";

/** These names are not to be broken at their hyphens. */
const H_AP = html`<span class="nowrap">H-AP</span>`;
const H_RANK = html`<span class="nowrap">H-rank</span>`;
const LOSS = html`<span class="nowrap">1 − H-AP</span>`;
const R_AT_1 = html`<dfn class="nowrap">R@1</dfn>`;

const math = (inner: unknown) => html`<math>${inner}</math>`;
/** A formula with the sizes of a line of its own. Two of them may stand in two lines on a narrow screen. */
const display = (inner: unknown) => html`<math displaystyle="true">${inner}</math>`;
const fraction = (above: string | number, below: string | number) =>
  mathml`<mfrac><mn>${above}</mn><mn>${below}</mn></mfrac>`;
const of = (name: string, argument = "k") =>
  mathml`<mrow><mtext>${name}</mtext><mo stretchy="false">(</mo><mi>${argument}</mi><mo stretchy="false">)</mo></mrow>`;
const RANK_PLUS = mathml`<mrow><msup><mtext>rank</mtext><mo>+</mo></msup><mo stretchy="false">(</mo><mi>k</mi><mo stretchy="false">)</mo></mrow>`;

const levelsOf = ({ state }: Work, which = 0): number[] => orderLevels(state, which);

/** The ranks of the two right results. */
function rightRanks(work: Work, which = 0): [number, number] {
  const finest = depth(work.state);
  const [first = 0, second = 0] = levelsOf(work, which).flatMap((level, place) =>
    level === finest ? [place + 1] : [],
  );
  return [first, second];
}

const NOUNS = ["a stranger", "one of the same group", "one of the same family", "one of the same species"];

/** What a playground can hide. */
const HIDEABLE = [
  "presets query tools tree tree-editor bars h-rank scores why ap-equation equation curve controls relevance-kind ties",
  "ap coarse-ap h_ap recall_at_1 ndcg asi mistake_severity",
]
  .join(" ")
  .split(" ");

/** Hides everything but these. */
const only = (...shown: string[]): string => HIDEABLE.filter((name) => !shown.includes(name)).join(" ");

const whatASearchReturns: Part = {
  title: "What a search returns",
  text: html`<p>
      You show a picture to a large collection and ask what in it looks like this. Your picture is the <dfn>query</dfn>,
      and the collection is the <dfn>gallery</dfn>. The answer is the whole gallery as a list, the <dfn>ranking</dfn>,
      with the most similar picture first. The place of a picture in it is its <dfn>rank</dfn>, counted from 1.
    </p>
    <p>
      Here the query is a spotted round beetle, and the gallery has five pictures. Two of them show the query’s own
      species. These are the <em>right</em> results. The other three are mistakes. You can move a result: drag its row,
      or press its arrows.
    </p>
    <p>
      The mistakes are not alike. The ring beside a result shows what it has in common with the query, with one segment
      for each level: first the group (both are beetles), then the family (both are round beetles), then the species
      (both are spotted round beetles). A full ring is the same species. An empty ring is a stranger.
    </p>`,
  task: html`Bring both results of the query’s own species to the top.`,
  hint: html`Drag the result at rank 2 to rank 1 by its dots, or press its up arrow. Then bring the result at rank 5 to
  rank 2 in the same way.`,
  hide: only("query"),
  begin: () => ({ state: fromLevels(FIG_8.first) }),
  check(work) {
    if (near(fineAp(work.scores[0]), 1)) {
      return solved(
        "Both right results now stand above all mistakes. How the three mistakes follow each other is still open. This lesson is about whether that matters.",
      );
    }
    const levels = levelsOf(work);
    const wrong = levels.findIndex((level) => level < depth(work.state));
    return notYet(
      `Rank ${wrong + 1} has ${NOUNS[levels[wrong] ?? 0] ?? ""}, and a right result still stands below it.`,
    );
  },
};

const averagePrecision: Part = {
  title: "AP: how early do the right results come?",
  text: html`<p>
      A <dfn>metric</dfn> is a number that tells a good ranking from a bad one. Walk down the list and stop at every
      right result. Ask two questions there. Which share of the results so far is right? This is the
      <dfn>precision</dfn> at that rank. Which share of all right results have you found so far? This is the
      <dfn>recall</dfn>.
    </p>
    <p>
      At rank 2, one of two results is right, so the precision is ${math(fraction(1, 2))}. You have found one of the two
      right results, so the recall is ${math(fraction(1, 2))} as well. At rank 5 the precision is
      ${math(fraction(2, 5))} and the recall is 1.
    </p>
    <p>
      The mean of these precisions is the <dfn>average precision</dfn>, or AP. Above the list it is called “AP species”,
      because right means the same species. Here it is
      ${math(
        mathml`<mrow><mo>(</mo>${fraction(1, 2)}<mo>+</mo>${fraction(2, 5)}<mo>)</mo></mrow><mo>/</mo><mn>2</mn><mo>=</mo><mn>0.45</mn>`,
      )}.
      AP is 1 when all right results come first. Every mistake above a right result lowers it.
    </p>
    <p>
      In symbols: ${math(of("rank"))} is the rank of a right result <i>k</i>, and ${math(RANK_PLUS)} counts only the
      right results down to it, itself included. AP is the mean of
      ${math(mathml`<mfrac>${RANK_PLUS}${of("rank")}</mfrac>`)} over the right results.
    </p>
    <p>
      A simpler metric asks only whether the first result is right. For one query it is 1 or 0; here it is 0. Its mean
      over many queries is called ${R_AT_1}, “recall at 1”: the share of queries whose first result is right.
    </p>`,
  task: html`Move results until AP is exactly 0.75.`,
  hint: html`If a right result stands at rank 1, its share is 1. The mean of 1 and which other share is 0.75? The second
  share is 2 divided by the rank of the second right result.`,
  hide: only("query", "ap", "ap-equation"),
  begin: () => ({ state: fromLevels(FIG_8.first) }),
  check(work) {
    const [first, second] = rightRanks(work);
    const ap = fineAp(work.scores[0]);
    const where = `The right results stand at ranks ${first} and ${second}`;
    if (near(ap, 0.75)) return solved(`${where}: (1/${first} + 2/${second}) / 2 = 0.75.`);
    return notYet(`${where}, so AP is (1/${first} + 2/${second}) / 2 = ${format.score(ap)}.`);
  },
};

const twoMistakes: Part = {
  title: "Two mistakes that AP cannot tell apart",
  text: html`<p>
      Here are the same five results in two rankings. In both, the right ones stand at ranks 2 and 5, so both have the
      same AP, 0.45. Both begin with a mistake, so both have an R@1 of 0. Now look at rank 1. The first ranking begins
      with a striped round beetle. It is the wrong species, but of the query’s own family, a <dfn>cousin</dfn>. The
      second begins with a long beetle, which has only the group in common. You notice the difference. AP does not,
      because it knows only right and wrong.
    </p>
    <p>
      People who search do care. When they ask for a brown bear, a polar bear is a small mistake and a butterfly a large
      one. A program that learns to raise AP has no reason to prefer the polar bear.
    </p>
    <p>
      How bad is a mistake? Count the levels that it does not share with the query, the empty segments of its ring. This
      number is the <dfn>severity</dfn> of the mistake. It is 1 for the same family, 2 for the same group, and 3 for a
      stranger.
    </p>`,
  task: html`Change the second ranking so that its first mistake has severity 1 and AP stays at 0.45.`,
  hint: html`Move the one of the same family from rank 4 to rank 1. The results between move down by one, so the right
  one is now at rank 3. Which result must move so that it is at rank 2 again?`,
  hide: only("query", "ap"),
  begin: () => ({ state: fromLevels(FIG_8.first, FIG_8.second) }),
  check(work) {
    const second = work.scores[1];
    const ap = fineAp(second);
    const startAp = fineAp(work.start.scores[1]);
    if (!near(ap, startAp)) {
      const [a, b] = rightRanks(work, 1);
      return notYet(
        `In the second ranking the right results are now at ranks ${a} and ${b}, and its AP is ${format.score(ap)}. They must be at ranks 2 and 5.`,
      );
    }
    const severity = second?.mistake_severity ?? 0;
    if (severity > 1) {
      return notYet(
        `AP is ${format.score(ap)}, but the first mistake of the second ranking still has severity ${severity}.`,
      );
    }
    return solved(
      "The second ranking is better now, and its AP is the same number as before. A metric should see what you have done.",
    );
  },
};

const relevance: Part = {
  title: "Relevance from a tree",
  text: html`<p>
      Groups, families and species make a tree, the <dfn>taxonomy</dfn>. It is drawn below the list and has <i>L</i> = 3
      levels. Compare a result with the query from the group down. The number of levels at which they have the same name
      is their <dfn>shared level</dfn> <i>l</i>, the filled segments of the ring: 3 for the same species, 2 for the same
      family, 1 for the same group and 0 for a stranger. All results but the strangers are <dfn>kin</dfn>.
    </p>
    <p>
      The shared level gives what a result is worth, its <dfn>relevance</dfn>:
      ${math(mathml`<mtext>rel</mtext><mo>=</mo><mi>l</mi><mo>/</mo><mi>L</mi>`)}. The four values are 1,
      ${math(fraction(2, 3))}, ${math(fraction(1, 3))} and 0.
    </p>
    <p>
      Should one of the same family be worth so much? That is a choice, and the exponent <i>α</i> (alpha) makes it:
      <span class="nowrap"
        >${math(
          mathml`<mtext>rel</mtext><mo>=</mo><msup><mrow><mo stretchy="false">(</mo><mi>l</mi><mo>/</mo><mi>L</mi><mo stretchy="false">)</mo></mrow><mi>α</mi></msup>`,
        )}.</span
      >
      With α = 2 the values are 1, ${math(fraction(4, 9))}, ${math(fraction(1, 9))} and 0, so the
      <dfn>finest level</dfn>, here the species, counts for more. With α = 0 all kin are worth the same. A stranger is
      worth 0, whatever α is. The bars show the relevance. Move the slider below the tree and watch them.
    </p>
    <p class="aside">
      This lesson follows the paper HAPPIER. Its equation 4 also divides a relevance by the number of results that have
      the same shared level, which it writes |Ω(<i>l</i>)|. A level with many results then counts no more than a level
      with few. The playground has both forms. This lesson keeps the simple one, as the paper’s Fig. 8 does.
    </p>`,
  task: html`Sort the five results by relevance, the greatest first. Then set α so that two of the same family together
  are worth less than one of the same species.`,
  hint: html`The full rings come first and the empty ring comes last. For the second part, one of the same family must
  be worth less than 0.5. With α = 1 it is worth 0.67.`,
  hide: only("query", "tree", "bars", "controls"),
  begin: () => ({ state: fromLevels([1, 3, 0, 2, 3]) }),
  check(work) {
    const items = work.scores[0]?.items ?? [];
    const worth = (place: number) => items[place]?.relevance ?? 0;
    const wrong = items.findIndex((_, place) => worth(place) < worth(place + 1));
    if (wrong >= 0) {
      return notYet(
        `Rank ${wrong + 1} has relevance ${short(worth(wrong))}, but rank ${wrong + 2} below it has ${short(worth(wrong + 1))}.`,
      );
    }
    const levels = levelsOf(work);
    const [family, species] = [worth(levels.indexOf(2)), worth(levels.indexOf(3))];
    if (2 * family >= species) {
      return notYet(
        `They are sorted. Two of the same family are worth 2 · ${short(family)} = ${short(2 * family)}, which is not less than ${short(species)}. Now change α.`,
      );
    }
    return solved(
      `With α = ${work.state.alpha.toFixed(1)}, one of the same family is worth ${short(family)}. The larger α is, the more the finest level counts.`,
    );
  },
};

const hRank: Part = {
  title: "H-rank, term by term",
  text: html`<p>
      In AP, each right result gives the share of right results so far. A hierarchical metric works in the same way, but
      counts relevance instead of right and wrong. Take a result <i>k</i>. Begin with its own relevance. For every
      result <i>j</i> above it, add the smaller of their two relevances. So no result adds more than <i>k</i> itself is
      worth. The sum is the hierarchical rank, or <dfn>${H_RANK}</dfn>, of <i>k</i>:
    </p>
    <p class="formula">
      ${display(mathml`${of("H-rank")}<mo>=</mo>${of("rel")}<mo>+</mo>`)}
      ${display(
        mathml`<munder><mo>∑</mo><mrow><mi>j</mi><mtext>\u00a0above\u00a0</mtext><mi>k</mi></mrow></munder><mtext>min</mtext><mo stretchy="false">(</mo>${of("rel", "j")}<mo>,</mo>${of("rel")}<mo stretchy="false">)</mo>`,
      )}
    </p>
    <p>
      Take α = 1 again. The result at rank 4 has relevance ${math(fraction(1, 3))}, which the page writes as 0.33. Above
      it stand results with ${math(fraction(2, 3))}, 1 and 0. They add ${math(fraction(1, 3))}, ${math(fraction(1, 3))}
      and 0. Its ${H_RANK} is
      ${math(
        mathml`${fraction(1, 3)}<mo>+</mo>${fraction(1, 3)}<mo>+</mo>${fraction(1, 3)}<mo>+</mo><mn>0</mn><mo>=</mo><mn>1</mn>`,
      )}.
    </p>
    <p>
      Then divide by the rank, here <span class="nowrap">1 / 4 = 0.25</span>. This <em>quotient</em> is what the result
      gives. It fills the bar, and the frame of the bar is the relevance. A stranger adds nothing to the results below
      it, but it takes a rank and makes their divisor larger.
    </p>
    <p>
      The sum of all quotients, divided by the sum of all relevances, is the hierarchical AP, or <dfn>${H_AP}</dfn>. At
      the start the five relevances add up to 3, so ${H_AP} is
      <span class="nowrap">(0.67 + 0.83 + 0.25 + 0.6) / 3 = 0.78</span>. A perfect ranking has 1, because each result
      then gives its whole relevance. If there is only right and wrong (<i>L</i> = 1), every right result has relevance
      1, ${H_RANK} is rank<sup>+</sup>, and ${H_AP} is AP.
    </p>`,
  task: html`The one of the same group, at rank 4, gives 1 / 4 = 0.25. Let it give as much as it can: its whole
  relevance, 0.33.`,
  hint: html`The stranger at rank 3 adds nothing to its ${H_RANK}, but makes the divisor 4 instead of 3. What if the
  stranger stands below?`,
  hide: only("query", "bars", "h-rank", "h_ap", "equation"),
  begin: () => ({ state: fromLevels(FIG_8.first) }),
  lit: 3,
  check(work) {
    const levels = levelsOf(work);
    const place = levels.indexOf(1);
    const item = work.scores[0]?.items[place];
    if (!item) return notYet("The one of the same group is missing.");
    const sum = `${short(item.h_rank)} / ${item.rank} = ${short(item.quotient)}`;
    if (near(item.quotient, item.relevance)) {
      return solved(`It gives ${sum}, its whole relevance, because nothing less relevant stands above it.`);
    }
    return notYet(`It gives ${sum}. The stranger above it takes a rank and adds nothing.`);
  },
};

const area: Part = {
  title: "H-AP as an area",
  text: html`<p>
      Precision and recall, too, have a form that counts relevance instead of right and wrong. Walk down the list once
      more and collect relevance. The share of all relevance that you have after a result is the
      <dfn>H-recall</dfn> there. It grows from 0 to 1 and is drawn to the right.
    </p>
    <p>
      At each result <i>k</i>, compare its ${H_RANK} with the most that it could be at this rank: its rank times its own
      relevance. This share is the <dfn>H-precision</dfn>,
      ${math(mathml`<mfrac>${of("H-rank")}<mrow>${of("rank")}<mo>·</mo>${of("rel")}</mrow></mfrac>`)}, drawn upwards. It
      is 1 when nothing less relevant stands above <i>k</i>.
    </p>
    <p>
      So every result but a stranger becomes a column, with its rank at the foot and the colour of its ring. It is as
      wide as its share of all relevance and as high as its H-precision. Its area is width times height:
    </p>
    <p class="formula">
      ${display(
        mathml`<mfrac>${of("rel")}<mrow><mo>∑</mo><mtext>rel</mtext></mrow></mfrac><mo>·</mo><mfrac>${of("H-rank")}<mrow>${of("rank")}<mo>·</mo>${of("rel")}</mrow></mfrac>`,
      )}
      ${display(
        mathml`<mo>=</mo><mfrac><mn>1</mn><mrow><mo>∑</mo><mtext>rel</mtext></mrow></mfrac><mo>·</mo><mfrac>${of("H-rank")}${of("rank")}</mfrac>`,
      )}
    </p>
    <p>
      Here ∑ rel is the sum of all relevances. The relevance of <i>k</i> stands once above a line and once below one, so
      it cancels. What is left is the quotient of <i>k</i>, divided by ∑ rel. All quotients together, divided by ∑ rel,
      are ${H_AP}. So the area of all columns is ${H_AP}, and a perfect ranking fills the square. Point at a result to
      find its column. The dashed line is drawn in the same way from plain precision and recall. The area under it is
      AP.
    </p>
    <p>
      Two models can have the same R@1, and one of them the higher ${H_AP}. Its first results are then right as often as
      those of the other. The rest of its rankings is better: its mistakes are nearer kin, or the right results and the
      kin come earlier.
    </p>`,
  task: html`Keep AP at 0.45 and make the shaded area as small as you can. You are done at ${H_AP} 0.580.`,
  hint: html`The right results must stay at ranks 2 and 5, so only ranks 1, 3 and 4 are free. A mistake costs most near
  the top. Which of the three is the worst one for rank 1?`,
  hide: only("query", "bars", "h-rank", "ap", "h_ap", "curve"),
  begin: () => ({ state: fromLevels(FIG_8.first) }),
  check(work) {
    const { science, state, start } = work;
    const [ap, startAp] = [fineAp(work.scores[0]), fineAp(start.scores[0])];
    if (!near(ap, startAp)) {
      return notYet(
        `AP is ${format.score(ap)} now. It stays at ${format.score(startAp)} if the right results are at ranks 2 and 5.`,
      );
    }
    const levels = levelsOf(work);
    const worstOrder = science
      .order(ranking(state, 0), settings(state), "worst_same_ap")
      .map((place) => levels[place] ?? 0);
    const worst = science.score({ depth: depth(state), levels: worstOrder }, settings(state)).h_ap ?? 0;
    const hAp = work.scores[0]?.h_ap ?? 1;
    if (!near(hAp, worst)) return notYet(`The area is ${format.score(hAp)}. A smaller one has the same AP.`);
    return solved(
      `The area went from ${format.score(start.scores[0]?.h_ap)} to ${format.score(hAp)}, the smallest one for this AP. AP is still ${format.score(ap)}.`,
    );
  },
};

const loss: Part = {
  title: "From the metric to a loss",
  text: html`<p>
      A neural network makes a point of every picture. The nearer a point is to the query’s, the higher is its
      <dfn>score</dfn>, and the scores make the ranking. Training changes the network a little at a time, and so the
      scores. It has a number that should become small, the <dfn>loss</dfn>, and asks how steeply the loss falls when a
      score changes a little. This is the <dfn>slope</dfn>, and training follows it.
    </p>
    <h2>Why not use ${H_AP} itself?</h2>
    <p>
      The loss should be ${LOSS}. But ${H_AP} is made of ranks, and a rank is 1 plus the number of higher scores. Each
      comparison of two scores adds 0 or 1. Drawn over the difference of the scores, this is a <dfn>step</dfn>: flat at
      0, a jump, and flat at 1. Most small changes of a score change no rank. The slope is then 0, and the network
      learns nothing.
    </p>
    <h2>Why not a sigmoid?</h2>
    <p>
      So a curve that has a slope takes the place of the step. The first idea is the <dfn>sigmoid</dfn>, a step with
      round corners (drawn below). Alone it has three faults:
    </p>
    <ul>
      <li>
        It is flat where two scores are far apart. A bad mistake, a wrong result far above a right one, gets almost no
        slope.
      </li>
      <li>
        It also acts between two right results, and pushes one of them down, although their order does not matter.
      </li>
      <li>It can make the loss smaller than ${LOSS} really is. A small loss then promises nothing.</li>
    </ul>
    <h2>Two curves instead</h2>
    <p>
      The paper HAPPIER takes two curves. The <dfn>upper step</dfn> compares a result with less relevant ones. It is
      never below the true step, so no rank is taken to be too small. The <dfn>lower step</dfn> compares a result with
      more relevant ones. It is never above the true step, so no ${H_RANK} is taken to be too large. Between results of
      equal relevance the true step stays. So no quotient is too large, and the loss is never smaller than ${LOSS}. The
      upper step has no flat end, so bad mistakes keep their slope.
    </p>`,
  task: html`The second fault is about an order that does not matter. Find the one move that changes the list, but
  neither AP nor ${H_AP}.`,
  hint: html`Which two results have the same ring? Exchange them.`,
  hide: only("query", "ap", "h_ap"),
  begin: () => ({ state: fromLevels([0, 3, 3, 1, 2]) }),
  check({ scores, start }) {
    const [ap, startAp] = [fineAp(scores[0]), fineAp(start.scores[0])];
    const [hAp, startHAp] = [scores[0]?.h_ap ?? 0, start.scores[0]?.h_ap ?? 0];
    if (!near(ap, startAp) || !near(hAp, startHAp)) {
      return notYet(
        `From the start, AP went from ${format.score(startAp)} to ${format.score(ap)} and H-AP from ${format.score(startHAp)} to ${format.score(hAp)}. Start again.`,
      );
    }
    return solved(
      "The two results of the query’s own species have changed places, and both numbers are as before. A loss should not push them apart either. The sigmoid does.",
    );
  },
  load: () => import("../steps/akin-steps.js"),
  after: html`<section class="review wide" aria-labelledby="faults-title">
    <h2 id="faults-title">See the curves and the three faults</h2>
    <p>
      The first chart has the true step, the sigmoid, and the upper and the lower step of HAPPIER. The second chart has
      results on a line by their scores, and below it what each loss does with them. An arrow says where the loss moves
      a result, and how far. Smooth-AP is the loss with the sigmoid alone. SupAP has the upper step, but knows only
      right and wrong. The H-AP surrogate is the loss of HAPPIER, with both. Where there are only right results and
      strangers, as in these three examples, SupAP and the surrogate are the same. See the faults in turn: vanishing
      gradients, contradictory gradients, no upper bound. (A <dfn>gradient</dfn> is the slopes of all scores together.)
    </p>
    <akin-steps state="preset=vanishing" hide="sliders equations training items numbers losses"></akin-steps>
    <p><a href="?view=steps">All steps and losses, with their settings</a></p>
  </section>`,
};

const price: Part = {
  title: "Clustering, and a price",
  text: html`<h2>What is the clustering term for?</h2>
    <p>
      Training sees a few hundred pictures at a time, a <dfn>batch</dfn>. Even if every batch is ranked perfectly, all
      pictures together may not be: in one batch the right results may have scores around 0.9, and in another around
      0.5, where the first batch has its strangers. The <dfn>clustering term</dfn> pulls all pictures of a species to
      one point, the same for every batch.
    </p>
    <p>
      The loss of HAPPIER is a mixture of two numbers, the ranking term from the last part and the clustering term. A
      weight λ (lambda) between 0 and 1 says how much each counts:
      <span class="nowrap">(1 − λ) · ranking + λ · clustering</span>. The
      <a href="?view=training">training ground</a> lets you watch it.
    </p>
    <h2>What does a hierarchical loss cost?</h2>
    <p>
      It also falls when a cousin rises. A network cannot get everything right. Then it can pay to bring a cousin past
      several strangers, even if a right result loses a place. AP at the finest level falls a little while ${H_AP}
      rises. With a larger α cousins are worth less, and this happens less often.
    </p>`,
  task: html`Show this price: with one move, raise ${H_AP} and lower AP.`,
  hint: html`The one of the same family at rank 5 raises ${H_AP} as it passes strangers. AP falls when it passes the
  right result as well.`,
  hide: only("query", "ap", "h_ap", "why"),
  begin: () => ({ state: fromLevels([0, 3, 0, 0, 2]) }),
  check({ scores, state, start }) {
    const [ap, startAp] = [fineAp(scores[0]), fineAp(start.scores[0])];
    const [hAp, startHAp] = [scores[0]?.h_ap ?? 0, start.scores[0]?.h_ap ?? 0];
    const change = `From the start, H-AP went from ${format.score(startHAp)} to ${format.score(hAp)} and AP from ${format.score(startAp)} to ${format.score(ap)}.`;
    if (!isOneMove(start.state.orders[0].items, state.orders[0].items))
      return notYet(`${change} That took more than one move. Start again.`);
    if (hAp <= startHAp + 1e-9) return notYet(`${change} H-AP must rise.`);
    if (ap >= startAp - 1e-9)
      return notYet(`${change} H-AP has risen, but AP must fall: the right result has not lost a place.`);
    return solved(`${change} A loss made for AP would refuse this move. A loss made for H-AP wants it.`);
  },
};

/** The last part has this ranking until the reader has searched. */
const SAMPLE = [3, 3, 0, 2, 3, 1, 0, 2, 3, 0, 1, 3, 2, 0, 1];
/** The most results of the reader's own ranking that the last part takes. */
const OWN = 20;

function ownRanking(): ReturnType<Part["begin"]> {
  const own = readLastRankings().at(-1);
  const shared = own?.shared.slice(0, OWN) ?? [];
  const falls = shared.some((level, place) => level < (shared[place + 1] ?? 0));
  // In a perfect ranking there is nothing to move.
  return own && falls
    ? { state: fromLastRanking({ ...own, shared }), names: own.names.slice(0, OWN), query: own.query }
    : { state: fromLevels(SAMPLE) };
}

const ownPicture: Part = {
  title: "Try it on your own picture",
  text: html`<p>
      Now take a ranking that a real network has made. <a href="?view=search">Search with a picture</a>, your own or one
      from the gallery, and come back. Its first ${OWN} results then stand here. Until then you see a sample of
      ${SAMPLE.length} results.
    </p>
    <p>
      Look at the mistakes near the top: how severe are they? Then look at the bars. The empty part of a bar is the cost
      of the results above it.
    </p>`,
  task: html`Find the one move that raises ${H_AP} the most. Nine tenths of the best gain are enough.`,
  hint: html`Try two kinds of moves, and start again after each: bring a full ring from far down to the top, or bring
  the highest stranger to the end. “Why” names the gain of each.`,
  hide: only("query", "bars", "h-rank", "ap", "h_ap", "why"),
  begin: ownRanking,
  check({ science, scores, state, start }) {
    const gain = (scores[0]?.h_ap ?? 0) - (start.scores[0]?.h_ap ?? 0);
    if (!isOneMove(start.state.orders[0].items, state.orders[0].items)) {
      return notYet(
        `Together these moves change H-AP by ${format.difference(gain)}, but it took more than one. Start again.`,
      );
    }
    const best = bestGain(science, start.state);
    if (gain <= 1e-9) return notYet(`This move changes H-AP by ${format.difference(gain)}. It must rise. Start again.`);
    if (gain < 0.9 * best)
      return notYet(`This move raises H-AP by ${format.score(gain)}. Another one raises it by more. Start again.`);
    return solved(`This move raises H-AP by ${format.score(gain)}. The best one raises it by ${format.score(best)}.`);
  },
  after: html`<section class="review" aria-labelledby="review-title">
    <h2 id="review-title">What you can say now</h2>
    <p>Answer each question for yourself, then open it.</p>
    <details>
      <summary>Why can two rankings with the same AP differ in ${H_AP}?</summary>
      <p>
        AP sees only the ranks of the right results. ${H_AP} also sees which mistakes stand there: a near relation costs
        less than a stranger at the same rank.
      </p>
    </details>
    <details>
      <summary>One model has a higher ${H_AP} than another, and the same R@1. What is different?</summary>
      <p>
        The first result is right as often with both. Below it, the first model ranks better: its mistakes are nearer
        kin, or right results and kin come earlier. R@1 looks at the first result only and cannot see this.
      </p>
    </details>
    <details>
      <summary>
        A result of the same family (two of three levels) stands at rank 4. Above it are one of the same species, a
        stranger and one of the same group. What are its relevance, its ${H_RANK} and its quotient, with α = 1?
      </summary>
      <p>
        Its relevance is 2/3 = 0.67. Its ${H_RANK} is its own 0.67, plus min(1, 0.67) = 0.67, plus 0, plus min(0.33,
        0.67) = 0.33, together 1.67. Divided by the rank, this is 1.67 / 4 = 0.42, of at most 0.67.
      </p>
    </details>
    <details>
      <summary>What does α do?</summary>
      <p>
        It sets what kin are worth: rel = (<i>l</i> / <i>L</i>)<sup>α</sup>. The larger α is, the more the finest level
        counts. With α = 0 all kin are worth the same. A stranger is worth 0, whatever α is.
      </p>
    </details>
    <details>
      <summary>Why is a sigmoid alone not a good stand-in for the step?</summary>
      <p>
        It is flat where two scores are far apart, so bad mistakes get almost no slope. It pushes right results against
        each other. And the loss can be smaller than the true one.
      </p>
    </details>
    <details>
      <summary>What is the clustering term for?</summary>
      <p>
        The ranking part sees one batch at a time. The clustering term pulls the pictures of a species to one point that
        all batches share, so that good rankings in the batches make a good ranking of all pictures.
      </p>
    </details>
    <details>
      <summary>Why may a hierarchical loss lose a little AP at the finest level?</summary>
      <p>
        It also falls when a cousin rises past strangers. Where a network cannot get everything right, this can outweigh
        a right result that loses a place. AP sees only the lost place.
      </p>
    </details>
    <p><a class="button" href="?view=playground">Go on in the playground</a></p>
  </section>`,
};

export const PARTS: readonly Part[] = [
  whatASearchReturns,
  averagePrecision,
  twoMistakes,
  relevance,
  hRank,
  area,
  loss,
  price,
  ownPicture,
];
