import type { Tokens } from './waterfall.ts';

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

export const formatTokens = ({ prompt, completion }: Tokens): string =>
  `${NUMBER.format(prompt)} + ${NUMBER.format(completion)} tokens`;

interface Price {
  input_per_million: string;
  output_per_million: string;
  currency: string;
}

/** What tokens cost at a model's current price, such as `0.0012 USD`; undefined without a price. */
export function formatTokenCost(
  { prompt, completion }: Tokens,
  price: Price | undefined,
): string | undefined {
  if (!price) return undefined;
  const { input_per_million, output_per_million, currency } = price;
  const cost =
    (prompt * Number(input_per_million) + completion * Number(output_per_million)) / 1_000_000;
  return `${cost.toLocaleString(undefined, { maximumSignificantDigits: 3 })} ${currency}`;
}
