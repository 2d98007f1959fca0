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
  if (count < 1_000_000_000) return `${(count / 1_000_000).toFixed(1)} MB`;
  return `${(count / 1_000_000_000).toFixed(1)} GB`;
}

/** A time that is left, in words: “about 3 minutes left”. */
export function timeLeft(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 1) return "less than a minute left";
  if (minutes < 90) return `about ${count(Math.round(minutes), "minute")} left`;
  return `about ${count(Math.round(minutes / 60), "hour")} left`;
}

export const milliseconds = (ms: number): string => (ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`);

export const count = (value: number, one: string, many = `${one}s`): string =>
  `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
