import { LIMITS } from '../../../shared/limits.ts';
import { ToolFailure } from '../tool.ts';
import { ball, ratio, Real, type Value } from './value.ts';

const PLAIN = /(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?/iy;
/** With a separator before each three digits of the integer part. */
const GROUPED = /[1-9]\d{0,2}([,_' ])\d{3}(?:\1\d{3})*(?!\d)(?:\.\d+)?/y;

function valueOf(written: string): Value {
  const [, digits = '', decimals = '', exponent = '0'] = /^(\d*)\.?(\d*)(?:e(.+))?$/i.exec(
    written,
  )!;
  const shift = Number(exponent) - decimals.length;
  if (Math.abs(shift) > LIMITS.arithmetic.exactDigits) return ball(new Real(written), new Real(0));
  const digitsValue = BigInt(digits + decimals);
  return shift < 0
    ? ratio(digitsValue, 10n ** BigInt(-shift))
    : ratio(digitsValue * 10n ** BigInt(shift), 1n);
}

const matchAt = (pattern: RegExp, text: string, at: number): string | undefined => {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
};

/**
 * Reads the number at a position and returns where it ends; undefined when there is none. Commas
 * group digits unless they separate a function's arguments. Throws ToolFailure for an ambiguous
 * number.
 */
export function numberAt(
  text: string,
  at: number,
  commasSeparate: boolean,
): { value: Value; end: number } | undefined {
  const grouped = matchAt(GROUPED, text, at);
  const isGrouped = grouped !== undefined && !(commasSeparate && grouped.includes(','));
  const written = isGrouped ? grouped : matchAt(PLAIN, text, at);
  if (written === undefined) return undefined;
  const end = at + written.length;
  // 2 e-3 may be 0.002 or 2 times e minus 3.
  const ambiguousNext = commasSeparate
    ? /[._']\d| e[+-]\d|e [+-]\d/iy
    : /[.,_']\d| e[+-]\d|e [+-]\d/iy;
  ambiguousNext.lastIndex = end;
  if (ambiguousNext.test(text) || /^0[xb][\da-f]/i.test(text.slice(at, at + 3))) {
    const numberText = /^[\w.,']{1,40}(?:(?<=e) [+-]\d| e[+-]\d)?/i.exec(text.slice(at))![0];
    throw new ToolFailure(
      `The number ${numberText} can be read in more than one way. Write a decimal point and no other signs in numbers, as in 1234.5.`,
    );
  }
  return { value: valueOf(isGrouped ? written.replace(/[,_' ]/g, '') : written), end };
}

/**
 * Whether a comma in a function's arguments may group digits: a comma without a space before three
 * digits, if the function also takes a single argument, the digits begin with 0, or other commas
 * are followed by a space.
 */
export const hasUnclearComma = (written: string, fewestArguments: number): boolean =>
  /\d,\d{3}(?!\d)/.test(written) && (fewestArguments === 1 || /\d,0\d\d|, /.test(written));
