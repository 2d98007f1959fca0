// The equations of the steps and of the losses.

import { html, mathml, type TemplateResult } from "lit";

type Math = ReturnType<typeof mathml>;

const t = mathml`<mi>t</mi>`;
const minus = mathml`<mo>−</mo>`;
const plus = mathml`<mo>+</mo>`;
const equals = mathml`<mo>=</mo>`;
const half = mathml`<mfrac><mn>1</mn><mn>2</mn></mfrac>`;
const symbol = (name: string) => mathml`<mi>${name}</mi>`;
const paren = (inner: Math) => mathml`<mrow><mo stretchy="false">(</mo>${inner}<mo stretchy="false">)</mo></mrow>`;
const raised = (sign: string) => mathml`<msup><mi>H</mi><mo>${sign}</mo></msup>`;
const sigma = (argument: Math) => mathml`<mrow><mi>σ</mi>${paren(argument)}</mrow>`;
const at = (score: string) => mathml`<msub><mi>s</mi><mi>${score}</mi></msub>`;
const named = (name: string, item: string) => mathml`<mrow><mtext>${name}</mtext>${paren(symbol(item))}</mrow>`;

/** A function by cases: the value, and where it holds. */
const cases = (rows: readonly (readonly [Math, Math])[]) =>
  mathml`<mrow><mo>{</mo><mtable columnalign="left left">${rows.map(
    ([value, where]) => mathml`<mtr><mtd>${value}</mtd><mtd>${where}</mtd></mtr>`,
  )}</mtable></mrow>`;

const tOverTau = mathml`<mrow>${t}<mo>/</mo><mi>τ</mi></mrow>`;
const below = mathml`<mrow>${t}<mo>≤</mo><mn>0</mn></mrow>`;
const above = mathml`<mrow>${t}<mo>&gt;</mo><mn>0</mn></mrow>`;

const STEPS: readonly { spoken: string; math: Math }[] = [
  {
    spoken: "H of t is 1 from 0 on, and 0 below",
    math: mathml`<mi>H</mi>${paren(t)}${equals}${cases([
      [mathml`<mn>0</mn>`, mathml`<mrow>${t}<mo>&lt;</mo><mn>0</mn></mrow>`],
      [mathml`<mn>1</mn>`, mathml`<mrow>${t}<mo>≥</mo><mn>0</mn></mrow>`],
    ])}`,
  },
  {
    spoken: "sigma of t over tau is 1 divided by 1 plus e to the minus t over tau",
    math: mathml`${sigma(tOverTau)}${equals}<mfrac><mn>1</mn><mrow><mn>1</mn>${plus}<msup><mi>e</mi><mrow><mo>−</mo>${tOverTau}</mrow></msup></mrow></mfrac>`,
  },
  {
    spoken:
      "H minus of t is sigma of t over tau up to 0, the same plus one half up to delta, and above delta a line of slope rho",
    math: mathml`${raised("−")}${paren(t)}${equals}${cases([
      [sigma(tOverTau), below],
      [
        mathml`<mrow>${sigma(tOverTau)}${plus}${half}</mrow>`,
        mathml`<mrow><mn>0</mn><mo>&lt;</mo>${t}<mo>≤</mo><mi>δ</mi></mrow>`,
      ],
      [
        mathml`<mrow><mi>ρ</mi>${paren(mathml`${t}${minus}<mi>δ</mi>`)}${plus}${sigma(mathml`<mi>δ</mi><mo>/</mo><mi>τ</mi>`)}${plus}${half}</mrow>`,
        mathml`<mrow>${t}<mo>&gt;</mo><mi>δ</mi></mrow>`,
      ],
    ])}`,
  },
  {
    spoken: "H plus of t is gamma t up to 0, and above it the smaller of nu t plus mu and 1",
    math: mathml`${raised("+")}${paren(t)}${equals}${cases([
      [mathml`<mrow><mi>γ</mi>${t}</mrow>`, below],
      [mathml`<mrow><mi>min</mi>${paren(mathml`<mi>ν</mi>${t}${plus}<mi>μ</mi><mo>,</mo><mn>1</mn>`)}</mrow>`, above],
    ])}`,
  },
];

const overItems = (top: Math, bottom: Math, share: Math, set: Math) =>
  mathml`<mi>L</mi>${equals}<mn>1</mn>${minus}${share}<munder><mo>∑</mo>${set}</munder><mfrac>${top}${bottom}</mfrac>`;

const LOSS_EQUATIONS: readonly { says: string; spoken: string; math: Math }[] = [
  {
    says: "Smooth-AP and SupAP average over the items P of the query’s species:",
    spoken: "L is 1 minus the mean over k in P of rank plus of k divided by rank of k",
    math: overItems(
      mathml`<mrow><msup><mtext>rank</mtext><mo>+</mo></msup>${paren(symbol("k"))}</mrow>`,
      named("rank", "k"),
      mathml`<mfrac><mn>1</mn><mrow><mo>|</mo><mi>P</mi><mo>|</mo></mrow></mfrac>`,
      mathml`<mrow><mi>k</mi><mo>∈</mo><mi>P</mi></mrow>`,
    ),
  },
  {
    says: "The H-AP surrogate averages over all relatives:",
    spoken: "L is 1 minus the sum over k of H-rank of k divided by rank of k, divided by the sum of the relevances",
    math: overItems(
      named("H-rank", "k"),
      named("rank", "k"),
      mathml`<mfrac><mn>1</mn><mrow><munder><mo>∑</mo><mi>k</mi></munder>${named("rel", "k")}</mrow></mfrac>`,
      symbol("k"),
    ),
  },
  {
    says: "A training step moves every score against the slope of the loss:",
    spoken: "s j becomes s j minus eta times the derivative of L by s j",
    math: mathml`${at("j")}<mo>←</mo>${at("j")}${minus}<mi>η</mi><mfrac><mrow><mo>∂</mo><mi>L</mi></mrow><mrow><mo>∂</mo>${at("j")}</mrow></mfrac>`,
  },
];

const block = (spoken: string, math: Math) =>
  html`<div>
    <math displaystyle="true" aria-label=${spoken}><mrow>${math}</mrow></math>
  </div>`;

export const equations = (): TemplateResult =>
  html`<details class="equations">
    <summary>The steps and the losses as equations</summary>
    <p class="note">
      An item <i>k</i> looks at another item <i>j</i>, and <i>t</i> = <i>s</i><sub>j</sub> − <i>s</i><sub>k</sub> is the
      difference of their scores. H is the true step, σ the sigmoid, H⁻ the upper step (HAPPIER’s H<sup>&lt;</sup>), and
      H⁺ the lower step (HAPPIER’s H<sup>&gt;</sup>).
    </p>
    <div class="scroll" tabindex="0" role="region" aria-label="Equations">
      <div>${STEPS.map(({ spoken, math }) => block(spoken, math))}</div>
      <div>
        ${LOSS_EQUATIONS.map(
          ({ says, spoken, math }) =>
            html`<p class="note">${says}</p>
              ${block(spoken, math)}`,
        )}
      </div>
    </div>
    <p class="note">
      ROADMAP, eq. 3 to 5, and HAPPIER, eq. 2, 3, 43 and 44. Eq. 43 is printed with max in place of min, which would not
      be a lower bound.
    </p>
  </details>`;
