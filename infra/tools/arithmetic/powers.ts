import { LIMITS } from '../../../shared/limits.ts';
import { ToolFailure } from '../tool.ts';
import {
  absolute,
  ball,
  digitsOf,
  divide,
  isExact,
  knownSign,
  multiply,
  negate,
  ONE,
  ratio,
  signOf,
  toBall,
  ZERO,
  type Value,
} from './value.ts';
import { charge } from './work.ts';

/** Powers up to this one are multiplied out, which keeps more digits. */
const MULTIPLIED = 1_000;
const LARGEST_ROOT = 100n;

const notReal = (what: string): never => {
  throw new ToolFailure(`${what} has no real value.`);
};

/** Throws ToolFailure when `a` is not above 0. */
export function ln(a: Value): Value {
  if (knownSign(a) !== 1) return notReal('The logarithm of 0 or of a negative number');
  if (isExact(a) && a.equals(1)) return ZERO;
  const { middle, radius } = toBall(a);
  charge(2);
  return ball(middle.ln(), radius.div(middle.minus(radius)));
}

export function exp(a: Value): Value {
  if (signOf(a) === 0) return ONE;
  const { middle, radius } = toBall(a);
  if (middle.e > 12 || radius.gt(0.5))
    throw new ToolFailure('A power in the expression is too large or too near 0.');
  charge(1 + Math.max(middle.e, 0));
  const result = middle.exp();
  return ball(result, result.times(radius).times(2));
}

/** The whole `degree`-th root; undefined when there is none. */
function wholeRoot(whole: bigint, degree: bigint): bigint | undefined {
  if (whole < 2n) return whole;
  // Newton's method approaches the root from above.
  let root = 1n << (BigInt(whole.toString(2).length) / degree + 1n);
  for (;;) {
    charge(0.01 + (digitsOf(whole) / LIMITS.arithmetic.exactDigits) ** 2 / 5);
    const next = ((degree - 1n) * root + whole / root ** (degree - 1n)) / degree;
    if (next >= root) break;
    root = next;
  }
  return root ** degree === whole ? root : undefined;
}

/** The exact root of a positive fraction; undefined when it is irrational. */
function exactRoot(a: Value, degree: bigint): Value | undefined {
  if (!isExact(a) || degree > LARGEST_ROOT) return undefined;
  const numerator = wholeRoot(a.n, degree);
  if (numerator === undefined) return undefined;
  const denominator = wholeRoot(a.d, degree);
  return denominator === undefined ? undefined : ratio(numerator, denominator);
}

/** Computes the power by squaring. `exponent` is a whole number from 1 to MULTIPLIED. */
function multipliedOut(a: Value, exponent: bigint): Value {
  let result: Value = ONE;
  for (const bit of exponent.toString(2)) {
    result = multiply(result, result);
    if (bit === '1') result = multiply(result, a);
  }
  return result;
}

function wholePower(a: Value, exponent: bigint): Value {
  if (exponent < 0n) return divide(ONE, wholePower(a, -exponent));
  if (exponent === 0n) return ONE;
  if (isExact(a)) {
    if (a.n < 2n && a.d === 1n) return exponent % 2n === 0n ? a.abs() : a;
    const digits = Math.max(digitsOf(a.n), digitsOf(a.d)) * Number(exponent);
    if (digits <= 2 * LIMITS.arithmetic.exactDigits) {
      return ratio((a.s * a.n) ** exponent, a.d ** exponent);
    }
  }
  if (exponent <= BigInt(MULTIPLIED)) return multipliedOut(a, exponent);
  const size = exp(multiply(ratio(exponent, 1n), ln(absolute(a))));
  return signOf(a) === -1 && exponent % 2n === 1n ? negate(size) : size;
}

/** Throws ToolFailure when the result is not real, or too large. */
export function power(a: Value, b: Value): Value {
  if (isExact(b) && b.d === 1n) return wholePower(a, b.s * b.n);
  if (signOf(a) === 0) return knownSign(b) === 1 ? ZERO : divide(ONE, ZERO);
  if (knownSign(a) !== 1) return notReal('A negative number to a power that is not whole');
  const root = isExact(b) ? exactRoot(a, b.d) : undefined;
  if (root !== undefined && isExact(b)) return wholePower(root, b.s * b.n);
  return exp(multiply(b, ln(a)));
}

/** Throws ToolFailure when `a` is negative. */
export function squareRoot(a: Value): Value {
  if (signOf(a) === 0) return ZERO;
  if (knownSign(a) !== 1) return notReal('The square root of a negative number');
  const exact = exactRoot(a, 2n);
  if (exact !== undefined) return exact;
  const { middle, radius } = toBall(a);
  charge(0.3);
  return ball(middle.sqrt(), radius.div(middle.minus(radius).sqrt()));
}

export function cubeRoot(a: Value): Value {
  const root = power(absolute(a), divide(ONE, ratio(3n, 1n)));
  return signOf(a) === -1 ? negate(root) : root;
}

/**
 * The logarithm of `a` to a base, exact if it is a whole number. Throws ToolFailure as `ln` does.
 */
export function logarithm(a: Value, base: Value): Value {
  if (isExact(base) && base.equals(1)) return notReal('A logarithm to the base 1');
  const result = divide(ln(a), ln(base));
  if (isExact(result) || !isExact(a)) return result;
  const nearest = result.middle.round();
  if (nearest.abs().gt(LIMITS.arithmetic.exactDigits * 4) || !nearest.isInteger()) return result;
  const wholeResult = ratio(BigInt(nearest.toFixed(0)), 1n);
  if (result.middle.minus(nearest).abs().gt(result.radius)) return result;
  const check = power(base, wholeResult);
  return isExact(check) && check.equals(a) ? wholeResult : result;
}
