const NUMBER = new Intl.NumberFormat();
const SECONDS = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

export const formatNumber = (value: number): string => NUMBER.format(value);

/** A duration: `240 ms`, `3.2 s`, `2 min 5 s`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${NUMBER.format(Math.round(ms))} ms`;
  if (ms < 60_000) return `${SECONDS.format(ms / 1_000)} s`;
  const seconds = Math.round(ms / 1_000);
  return `${NUMBER.format(Math.floor(seconds / 60))} min ${seconds % 60} s`;
}

/** Tokens of the prompt and of the answer. */
export const formatTokens = (tokens: { prompt: number; completion: number }): string =>
  `${NUMBER.format(tokens.prompt)} + ${NUMBER.format(tokens.completion)} tokens`;
