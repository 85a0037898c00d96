import { Decimal } from 'decimal.js';
import Fraction from 'fraction.js';
import { LIMITS } from '../../../shared/limits.ts';
import { ToolFailure } from '../tool.ts';
import { charge } from './work.ts';

/** Numbers of 60 significant digits. */
export const Real = Decimal.clone({ precision: 60, defaults: true });
/**
 * The largest relative error of a step: 100 times the rounding of a last digit, because decimal.js
 * guarantees less for its functions.
 */
export const STEP = new Real('1e-58');

/** A number that is known to lie no further than `radius` from `middle`. */
export interface Ball {
  middle: Decimal;
  radius: Decimal;
}

/** An exact fraction, or an approximation with 60 digits. */
export type Value = Fraction | Ball;

export const isExact = (value: Value): value is Fraction => value instanceof Fraction;
export const ZERO = new Fraction(0);
export const ONE = new Fraction(1);
export const HALF = new Fraction(1, 2);

const LONGEST_EXPONENT = 1e12;
const TOO_LONG = 10n ** BigInt(LIMITS.arithmetic.exactDigits);

/** The number of decimal digits, or a little more. */
export const digitsOf = (whole: bigint): number =>
  Math.ceil(whole.toString(16).length * Math.log10(16));

/** Throws ToolFailure when the number is too large, or too near 0. */
export function ball(middle: Decimal, radius: Decimal): Ball {
  if (!middle.isFinite() || !(Math.abs(middle.e) < LONGEST_EXPONENT))
    throw new ToolFailure('A number in the expression is too large or too near 0.');
  return { middle, radius: radius.plus(middle.abs().times(STEP)) };
}

/** Any value as a ball. */
export function toBall(value: Value): Ball {
  if (!isExact(value)) return value;
  charge(0.05 + (digitsOf(value.n) + digitsOf(value.d)) / 8_000);
  return ball(new Real(String(value.s * value.n)).div(String(value.d)), new Real(0));
}

/** A fraction in lowest terms; a ball where it is too long. `denominator` is not 0. */
export function ratio(numerator: bigint, denominator: bigint): Value {
  const [n, d] = [digitsOf(numerator), digitsOf(denominator)];
  // Euclid's algorithm takes as many steps as the shorter number has digits, and the cost of a step
  // grows with that number's length.
  charge(0.02 + (n + d) / 20_000 + Math.min(n, d) ** 2 / 400_000);
  const value = new Fraction(numerator, denominator);
  return value.n < TOO_LONG && value.d < TOO_LONG ? value : toBall(value);
}

/** 1, 0 or -1; undefined if 60 digits are not enough to decide. */
export function signOf(value: Value): number | undefined {
  if (isExact(value)) return value.n === 0n ? 0 : Number(value.s);
  return value.middle.abs().gt(value.radius) ? value.middle.s : undefined;
}

/** 1, 0 or -1. Throws ToolFailure if 60 digits are not enough to decide. */
export function knownSign(value: Value): number {
  const sign = signOf(value);
  if (sign === undefined)
    throw new ToolFailure('A number in the expression can not be told from zero.');
  return sign;
}

export const negate = (a: Value): Value =>
  isExact(a) ? a.neg() : { middle: a.middle.neg(), radius: a.radius };

export const absolute = (a: Value): Value =>
  isExact(a) ? a.abs() : { middle: a.middle.abs(), radius: a.radius };

export function add(a: Value, b: Value): Value {
  if (isExact(a) && isExact(b)) {
    return ratio(a.s * a.n * b.d + b.s * b.n * a.d, a.d * b.d);
  }
  charge(0.05);
  const [x, y] = [toBall(a), toBall(b)];
  return ball(x.middle.plus(y.middle), x.radius.plus(y.radius));
}

export const subtract = (a: Value, b: Value): Value => add(a, negate(b));

export function multiply(a: Value, b: Value): Value {
  if (isExact(a) && isExact(b)) {
    return ratio(a.s * a.n * b.s * b.n, a.d * b.d);
  }
  if (signOf(a) === 0 || signOf(b) === 0) return ZERO;
  charge(0.1);
  const [x, y] = [toBall(a), toBall(b)];
  const radius = x.middle.abs().times(y.radius).plus(y.middle.abs().plus(y.radius).times(x.radius));
  return ball(x.middle.times(y.middle), radius);
}

/** Throws ToolFailure when `b` is 0, or may be. */
export function divide(a: Value, b: Value): Value {
  if (signOf(b) === 0) throw new ToolFailure('The expression divides by zero.');
  if (signOf(b) === undefined)
    throw new ToolFailure('The expression divides by a number that can not be told from zero.');
  if (isExact(a) && isExact(b)) {
    return ratio(a.s * a.n * b.d, a.d * b.s * b.n);
  }
  if (signOf(a) === 0) return ZERO;
  charge(0.1);
  const [x, y] = [toBall(a), toBall(b)];
  const middle = x.middle.div(y.middle);
  const radius = x.radius.plus(middle.abs().times(y.radius)).div(y.middle.abs().minus(y.radius));
  return ball(middle, radius);
}

/**
 * The largest whole number that is not above `a`. Throws ToolFailure if 60 digits are not enough to
 * decide.
 */
export function floor(a: Value): Fraction {
  if (isExact(a)) return a.floor();
  const [low, high] = [a.middle.minus(a.radius).floor(), a.middle.plus(a.radius).floor()];
  if (!low.eq(high))
    throw new ToolFailure(
      'A number in the expression is too large, or too near a whole number, to be rounded for certain.',
    );
  return new Fraction(BigInt(low.toFixed(0)));
}
