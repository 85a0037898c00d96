import Fraction from 'fraction.js';
import { LIMITS } from '../../../shared/limits.ts';
import { ToolFailure } from '../tool.ts';
import { cubeRoot, exp, ln, logarithm, power, squareRoot } from './powers.ts';
import {
  arccosine,
  arcsine,
  arctangent,
  arctangent2,
  cosine,
  pi,
  sine,
  tangent,
} from './trigonometry.ts';
import {
  absolute,
  add,
  divide,
  floor,
  HALF,
  isExact,
  knownSign,
  multiply,
  negate,
  ONE,
  ratio,
  signOf,
  subtract,
  toBall,
  ZERO,
  type Value,
} from './value.ts';
import { charge } from './work.ts';

const MOST_PLACES = 100;
const whole = (value: number): Value => new Fraction(value);

function wholeNumber(value: Value, what: string): bigint {
  if (isExact(value) && value.d === 1n) return value.s * value.n;
  throw new ToolFailure(`${what} takes whole numbers.`);
}

/** The remainder of `a` divided by `b`, with the sign of `b`. */
export const modulo = (a: Value, b: Value): Value => subtract(a, multiply(b, floor(divide(a, b))));

/** Throws ToolFailure when `value` is not a whole number from 0 to the limit. */
export function factorial(value: Value): Value {
  const n = wholeNumber(value, 'The factorial');
  if (n < 0n || n > BigInt(LIMITS.arithmetic.factorial))
    throw new ToolFailure(
      `The factorial is calculated of whole numbers from 0 to ${LIMITS.arithmetic.factorial}.`,
    );
  charge((Number(n) / LIMITS.arithmetic.factorial) ** 2);
  let product = 1n;
  for (let factor = 2n; factor <= n; factor += 1n) product *= factor;
  return new Fraction(product);
}

/** Rounds to the nearest, halves away from 0. */
function round(value: Value, places: Value = ZERO): Value {
  const digits = wholeNumber(places, 'The number of decimals in round(x, n)');
  if (digits > MOST_PLACES || digits < -MOST_PLACES)
    throw new ToolFailure(`round(x, n) takes n from -${MOST_PLACES} to ${MOST_PLACES}.`);
  const scale = power(whole(10), whole(Number(digits)));
  const size = floor(add(multiply(absolute(value), scale), HALF));
  if (size.n === 0n) return ZERO;
  const rounded = divide(size, scale);
  return signOf(value) === -1 ? negate(rounded) : rounded;
}

function larger(a: Value, b: Value): Value {
  const difference = subtract(a, b);
  const sign = signOf(difference);
  if (sign !== undefined) return sign < 0 ? b : a;
  const { middle, radius } = toBall(a);
  return { middle, radius: radius.plus(toBall(difference).radius.times(2)) };
}

const smaller = (a: Value, b: Value): Value => negate(larger(negate(a), negate(b)));

function commonDivisor(a: Value, b: Value): Value {
  const [x, y] = [wholeNumber(absolute(a), 'gcd'), wholeNumber(absolute(b), 'gcd')];
  if (x === 0n || y === 0n) return ratio(x + y, 1n);
  // Reducing x/y divides both by their greatest common divisor.
  return ratio(x, (ratio(x, y) as Fraction).n);
}

function commonMultiple(a: Value, b: Value): Value {
  if (signOf(a) === 0 || signOf(b) === 0) return ZERO;
  return absolute(multiply(a, divide(b, commonDivisor(a, b))));
}

/** A function and the number of its arguments. */
interface Operation {
  least: number;
  most: number;
  run: (...values: Value[]) => Value;
}

type Unary = (a: Value) => Value;
type Binary = (a: Value, b: Value) => Value;

const one = (run: Unary): Operation => ({ least: 1, most: 1, run });
const two = (run: Binary): Operation => ({ least: 2, most: 2, run });
const many = (run: Binary): Operation => ({
  least: 2,
  most: Infinity,
  run: (...values) => values.reduce(run),
});

export const FUNCTIONS: ReadonlyMap<string, Operation> = new Map([
  ['abs', one(absolute)],
  ['ceil', one((a) => negate(floor(negate(a))))],
  ['floor', one(floor)],
  ['round', { least: 1, most: 2, run: round }],
  ['sign', one((a) => whole(knownSign(a)))],
  ['sqrt', one(squareRoot)],
  ['cbrt', one(cubeRoot)],
  ['exp', one(exp)],
  ['ln', one(ln)],
  ['log', { least: 1, most: 2, run: (a, base) => (base ? logarithm(a, base) : ln(a)) }],
  ['log2', one((a) => logarithm(a, whole(2)))],
  ['log10', one((a) => logarithm(a, whole(10)))],
  ['sin', one(sine)],
  ['cos', one(cosine)],
  ['tan', one(tangent)],
  ['asin', one(arcsine)],
  ['acos', one(arccosine)],
  ['atan', one(arctangent)],
  ['atan2', two(arctangent2)],
  ['min', many(smaller)],
  ['max', many(larger)],
  ['pow', two(power)],
  ['mod', two(modulo)],
  ['gcd', many(commonDivisor)],
  ['lcm', many(commonMultiple)],
  [
    'hypot',
    {
      least: 2,
      most: Infinity,
      run: (...values) => squareRoot(values.map((a) => multiply(a, a)).reduce(add)),
    },
  ],
  ['factorial', one(factorial)],
]);

/** The number of arguments of an operation, in words. */
export function arity({ least, most }: Operation): string {
  if (most === 1) return '1 argument';
  if (least === most) return `${least} arguments`;
  return `${least} or ${most === Infinity ? 'more' : most} arguments`;
}

export const CONSTANTS: ReadonlyMap<string, () => Value> = new Map([
  ['pi', pi],
  ['e', () => exp(ONE)],
  ['tau', () => multiply(pi(), whole(2))],
  ['phi', () => multiply(add(ONE, squareRoot(whole(5))), HALF)],
]);

/** The allowed content of an expression, as a sentence for the model. */
export const ALLOWED = `Allowed are numbers, + - * / ^ % ! and parentheses, the functions ${[...FUNCTIONS.keys()].join(', ')} and the constants ${[...CONSTANTS.keys()].join(', ')}.`;
