import type { Tokens } from '../domain/schema.ts';

/** Prices of a model's tokens, as decimal strings to avoid rounding. */
export interface Price {
  input_per_million: string;
  output_per_million: string;
  /** ISO 4217 code, the same for all models. */
  currency: string;
}

/** An exact amount of money as a decimal. */
export interface Cost {
  amount: string;
  currency: string;
}

/**
 * Maximum decimals of a price. A price per million tokens moves the decimal point by six more
 * places.
 */
const PRICE_DECIMALS = 9;
const DECIMALS = PRICE_DECIMALS + 6;

/** Converts a decimal to units of its last place. */
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
 * The cost of a model's tokens at the registry's current price; undefined if the registry lacks the
 * model or its price.
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

/** The sum of costs in the registry's single currency; undefined for no costs. */
export function sumCosts(costs: readonly Cost[]): Cost | undefined {
  const [first] = costs;
  if (!first) return undefined;
  const units = costs.reduce((sum, { amount }) => sum + unitsOf(amount, DECIMALS), 0n);
  return { amount: decimalOf(units), currency: first.currency };
}
