import type { Decimal } from 'decimal.js';
import type Fraction from 'fraction.js';
import { LIMITS } from '../../../shared/limits.ts';
import { ToolFailure } from '../tool.ts';
import { isExact, Real, toBall, type Ball, type Value } from './value.ts';

const MOST_DIGITS = 20;
const FEWEST_DIGITS = 17;
/** What can't be told from 0, and is nearer to it than this, is about 0. */
const NEAR_ZERO = 1e-17;
const PLACES = LIMITS.arithmetic.resultDigits;
const SCALE = 10n ** BigInt(PLACES);

/** A fraction that has finitely many decimals, as they are; undefined when they are too many. */
function decimals({ s, n, d }: Fraction): string | undefined {
  if (n >= SCALE || (n * SCALE) % d !== 0n) return undefined;
  const digits = String((n * SCALE) / d).padStart(PLACES + 1, '0');
  const fraction = digits.slice(-PLACES).replace(/0+$/, '');
  const text = `${digits.slice(0, -PLACES)}${fraction && `.${fraction}`}`;
  return text.length > PLACES + 2 ? undefined : `${s < 0n ? '-' : ''}${text}`;
}

/** As many of 20 digits as both ends of the ball agree on, rounded. */
function rounded({ middle, radius }: Ball): string {
  const ends: [Decimal, Decimal] = [middle.minus(radius), middle.plus(radius)];
  for (let digits = MOST_DIGITS; digits >= FEWEST_DIGITS; digits -= 1) {
    const [low, high] = ends.map((end) => end.toPrecision(digits));
    if (low === high) return low!;
  }
  const bound = middle.abs().plus(radius).toSignificantDigits(1, Real.ROUND_UP);
  if (middle.abs().gt(radius) || bound.gt(NEAR_ZERO))
    throw new ToolFailure(
      `The result can't be told to ${FEWEST_DIGITS} digits: the expression subtracts numbers that are almost the same, or uses numbers that are too large. Write it another way.`,
    );
  return `0 (nearer to 0 than ${bound.toString()})`;
}

/**
 * A value for the model: exact in full where it has at most 1,000 digits, a fraction and its
 * decimals where those never end, and "about" with 17 to 20 digits, each of them right, where it is
 * not exact. Throws ToolFailure when fewer digits are known.
 */
export function print(value: Value): string {
  const about = () => `about ${rounded(toBall(value))}`;
  if (!isExact(value)) return about();
  const exact = decimals(value);
  if (exact !== undefined) return exact;
  const fraction = value.toFraction();
  const terminates = value.d === 1n || fraction.length > PLACES;
  return terminates ? about() : `${fraction}, ${about()}`;
}
