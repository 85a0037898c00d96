import { ToolFailure } from '../tool.ts';
import { squareRoot } from './powers.ts';
import {
  add,
  ball,
  divide,
  HALF,
  isExact,
  knownSign,
  multiply,
  negate,
  ONE,
  Real,
  signOf,
  STEP,
  subtract,
  toBall,
  ZERO,
  type Ball,
  type Value,
} from './value.ts';
import { charge } from './work.ts';

/** The number of digits of the largest angle, which needs as many digits of pi. */
const LONGEST_ANGLE = 100;

/** Pi, which decimal.js holds. */
export const pi = (): Ball => ball(Real.acos(-1), new Real(0));

/** A quarter turn. */
const quarter = (): Value => multiply(pi(), HALF);

function angle(a: Value): Ball {
  const radians = toBall(a);
  if (radians.middle.e > LONGEST_ANGLE)
    throw new ToolFailure('An angle in the expression is too large.');
  charge(1 + Math.max(radians.middle.e, 0) / 30);
  return radians;
}

export function sine(a: Value): Value {
  if (signOf(a) === 0) return ZERO;
  const { middle, radius } = angle(a);
  const error = Real.min(middle.abs(), 1).times(STEP);
  return ball(middle.sin(), radius.plus(error));
}

export function cosine(a: Value): Value {
  if (signOf(a) === 0) return ONE;
  const { middle, radius } = angle(a);
  return ball(middle.cos(), radius.plus(STEP));
}

export const tangent = (a: Value): Value => divide(sine(a), cosine(a));

export function arctangent(a: Value): Value {
  if (signOf(a) === 0) return ZERO;
  const { middle, radius } = toBall(a);
  charge(6);
  return ball(middle.atan(), radius);
}

/** Throws ToolFailure when `a` is not from -1 to 1. */
export function arcsine(a: Value): Value {
  const oneMinusSquare = subtract(ONE, multiply(a, a));
  if (signOf(oneMinusSquare) === 0) return signOf(a) === 1 ? quarter() : negate(quarter());
  if (knownSign(oneMinusSquare) === -1)
    throw new ToolFailure('The arcsine or arccosine of a number beyond 1 has no real value.');
  return arctangent(divide(a, squareRoot(oneMinusSquare)));
}

/** Throws ToolFailure when `a` is not from -1 to 1. */
export const arccosine = (a: Value): Value =>
  isExact(a) && a.equals(1) ? ZERO : subtract(quarter(), arcsine(a));

/** The angle of the point (x, y). Throws ToolFailure for (0, 0). */
export function arctangent2(y: Value, x: Value): Value {
  if (signOf(x) === 0) {
    if (signOf(y) === 0) throw new ToolFailure('atan2(0, 0) has no value.');
    return knownSign(y) === -1 ? negate(quarter()) : quarter();
  }
  const slope = arctangent(divide(y, x));
  if (signOf(x) === 1) return slope;
  return knownSign(y) === -1 ? subtract(slope, pi()) : add(slope, pi());
}
