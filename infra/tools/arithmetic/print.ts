import type { Decimal } from 'decimal.js';
import type Fraction from 'fraction.js';
import { LIMITS } from '../../../shared/limits.ts';
import { ToolFailure } from '../tool.ts';
import { isExact, Real, toBall, type Ball, type Value } from './value.ts';

const MOST_DIGITS = 20;
const FEWEST_DIGITS = 17;
/**
 * A value that can't be distinguished from 0, and is closer to 0 than this, is printed as about 0.
 */
const NEAR_ZERO = 1e-17;
const PLACES = LIMITS.arithmetic.resultDigits;
const SCALE = 10n ** BigInt(PLACES);

/** The decimals of a fraction, if they end; undefined when there are too many. */
function decimals({ s, n, d }: Fraction): string | undefined {
  if (n >= SCALE || (n * SCALE) % d !== 0n) return undefined;
  const digits = String((n * SCALE) / d).padStart(PLACES + 1, '0');
  const fraction = digits.slice(-PLACES).replace(/0+$/, '');
  const text = `${digits.slice(0, -PLACES)}${fraction && `.${fraction}`}`;
  return text.length > PLACES + 2 ? undefined : `${s < 0n ? '-' : ''}${text}`;
}

/** The value rounded to the most digits, up to 20, on which both ends of the ball agree. */
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
 * Formats a value for the model: exactly if it has at most 1,000 digits, as a fraction and its
 * decimals if the decimals never end, and with "about" and 17 to 20 correct digits if it is not
 * exact. Throws ToolFailure when fewer digits are known.
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
