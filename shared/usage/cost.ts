import type { Tokens } from '../domain/schema.ts';

/** What a model's tokens cost; decimals as text, so that none is rounded. */
export interface Price {
  input_per_million: string;
  output_per_million: string;
  /** ISO 4217; the same one for all models. */
  currency: string;
}

/** Money, as a decimal that is exact: no digit of it was rounded. */
export interface Cost {
  amount: string;
  currency: string;
}

/** The most decimals of a price, and the places by which a price of a million moves the point. */
const PRICE_DECIMALS = 9;
const DECIMALS = PRICE_DECIMALS + 6;

/** A decimal, in units of its last place. */
function unitsOf(amount: string, decimals: number): bigint {
  const [whole = '', fraction = ''] = amount.split('.');
  return BigInt(whole + fraction.padEnd(decimals, '0'));
}

function decimalOf(units: bigint): string {
  const digits = units.toString().padStart(DECIMALS + 1, '0');
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, '');
  return digits.slice(0, -DECIMALS) + (fraction && `.${fraction}`);
}

/**
 * What tokens of a model cost at the price that the registry gives now; undefined where it gives
 * none, or does not have the model (any more).
 */
export function computeCost(
  model: { price?: Price } | undefined,
  { prompt, completion }: Pick<Tokens, 'prompt' | 'completion'>,
): Cost | undefined {
  if (!model?.price) return undefined;
  const { input_per_million, output_per_million, currency } = model.price;
  const units =
    unitsOf(input_per_million, PRICE_DECIMALS) * BigInt(prompt) +
    unitsOf(output_per_million, PRICE_DECIMALS) * BigInt(completion);
  return { amount: decimalOf(units), currency };
}

/** The sum of costs, which have one currency as all prices of a registry do; undefined of none. */
export function sumCosts(costs: readonly Cost[]): Cost | undefined {
  const [first] = costs;
  if (!first) return undefined;
  const units = costs.reduce((sum, { amount }) => sum + unitsOf(amount, DECIMALS), 0n);
  return { amount: decimalOf(units), currency: first.currency };
}
