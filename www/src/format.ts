/** A number with this number of decimals and the typographic minus: −0.25. */
export const decimals = (value: number, digits: number): string => value.toFixed(digits).replace("-", "−");

/** A score with three decimals: 0.782, 1.000. A dash where there is no score. */
export const score = (value: number | null | undefined): string =>
  value === null || value === undefined ? "–" : decimals(value, 3);

/** A difference with its sign; the minus is the typographic one. */
export function difference(value: number | null): string {
  if (value === null) return "–";
  const text = Math.abs(value).toFixed(3);
  return Number(text) === 0 ? "0.000" : `${value > 0 ? "+" : "−"}${text}`;
}

export const percent = (share: number): string => `${Math.round(share * 100)} %`;

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  if (count < 1_000_000) return `${Math.round(count / 1000)} kB`;
  return `${(count / 1_000_000).toFixed(1)} MB`;
}

export const milliseconds = (ms: number): string => (ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`);

export const count = (value: number, one: string, many = `${one}s`): string =>
  `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
