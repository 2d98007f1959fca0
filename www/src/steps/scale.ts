// Linear scales of the charts.

export interface Scale {
  (value: number): number;
  readonly domain: readonly [number, number];
}

export function scale(domain: readonly [number, number], [from, to]: readonly [number, number]): Scale {
  const [low, high] = domain;
  return Object.assign((value: number) => from + ((value - low) / (high - low)) * (to - from), { domain });
}

/** Some four to eight round numbers in a domain. */
export function ticks([low, high]: readonly [number, number], most: number): number[] {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => power * factor >= rough) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(6)));
}

/** A number with the typographic minus. */
export const figure = (value: number): string => String(value).replace("-", "−");
