import { html, nothing } from "lit";
import type { EncoderEntry } from "../protocol.js";

export interface Shown {
  encoder: number;
  /** The encoder shown beside it. */
  compare: number | null;
}

/** The choice of the encoder that ranks, or of two side by side. */
export function encoderSwitch(encoders: readonly EncoderEntry[], shown: Shown, change: (shown: Shown) => void) {
  if (encoders.length < 2)
    return html`<p class="encoder-only"><span class="soft">Encoder</span> ${encoders[0]?.name}</p>`;
  const both = shown.compare !== null;
  // Side by side, the first encoder of the bundle (its baseline) is on the left.
  const showBoth = () =>
    change(shown.encoder === 0 ? { encoder: 0, compare: 1 } : { encoder: 0, compare: shown.encoder });
  return html`<fieldset class="switch" data-testid="encoders">
      <legend>Encoder</legend>
      ${families(encoders).map(
        ({ name, members }) =>
          html`<label>
            <input
              type="radio"
              name="encoder"
              value=${name}
              .checked=${!both && members.includes(shown.encoder)}
              @change=${() => change({ encoder: sameBits(encoders, members, shown.encoder), compare: null })}
            />
            <span>${name}</span>
          </label>`,
      )}
      <label>
        <input type="radio" name="encoder" value="" data-testid="compare" .checked=${both} @change=${showBoth} />
        <span>Side by side</span>
      </label>
    </fieldset>
    ${both ? nothing : bitsChoice(encoders, shown, change)}
    ${both && encoders.length > 2 ? pairChoice(encoders, shown, change) : nothing}`;
}

/** Encoders that stand for one: a family of hash encoders, or one encoder alone. */
interface Family {
  name: string;
  members: number[];
}

function families(encoders: readonly EncoderEntry[]): Family[] {
  const all: Family[] = [];
  encoders.forEach(({ name, family }, index) => {
    const known = all.find(({ members }) => family !== undefined && encoders[members[0] ?? -1]?.family === family);
    if (known) known.members.push(index);
    else all.push({ name: family ?? name, members: [index] });
  });
  return all;
}

/** The member with the bits of the encoder shown, else the one with the most bits. */
function sameBits(encoders: readonly EncoderEntry[], members: readonly number[], shown: number): number {
  const bits = (index: number) => encoders[index]?.dimension ?? 0;
  const longest = members.reduce((a, b) => (bits(b) > bits(a) ? b : a));
  return members.find((index) => bits(index) === bits(shown)) ?? longest;
}

/** The choice of the number of bits, which loads the encoder with that number. */
function bitsChoice(encoders: readonly EncoderEntry[], shown: Shown, change: (shown: Shown) => void) {
  const bits = (index: number) => encoders[index]?.dimension ?? 0;
  const members = families(encoders).find(({ members }) => members.includes(shown.encoder))?.members ?? [];
  if (members.length < 2) return nothing;
  return html`<label class="field"
    ><span>Bits</span>
    <select
      data-testid="bits"
      @change=${(event: Event) => change({ encoder: Number((event.target as HTMLSelectElement).value), compare: null })}
    >
      ${members
        .toSorted((a, b) => bits(a) - bits(b))
        .map((index) => html`<option value=${index} ?selected=${index === shown.encoder}>${bits(index)}</option>`)}
    </select></label
  >`;
}

function pairChoice(encoders: readonly EncoderEntry[], shown: Shown, change: (shown: Shown) => void) {
  const choice = (label: string, chosen: number | null, set: (index: number) => Shown) =>
    html`<label class="field"
      ><span>${label}</span>
      <select @change=${(event: Event) => change(set((event.target as HTMLSelectElement).selectedIndex))}>
        ${encoders.map(({ name }, index) => html`<option ?selected=${index === chosen}>${name}</option>`)}
      </select></label
    >`;
  return html`<div class="pair">
    ${choice("Left", shown.encoder, (index) => ({ ...shown, encoder: index }))}
    ${choice("Right", shown.compare, (index) => ({ ...shown, compare: index }))}
  </div>`;
}
