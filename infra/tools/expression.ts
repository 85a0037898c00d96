import { LIMITS } from '../../shared/limits.ts';
import { ALLOWED, arity, CONSTANTS, factorial, FUNCTIONS, modulo } from './arithmetic/functions.ts';
import { hasUnclearComma, numberAt } from './arithmetic/numbers.ts';
import { power, squareRoot } from './arithmetic/powers.ts';
import { print } from './arithmetic/print.ts';
import {
  add,
  divide,
  isExact,
  multiply,
  negate,
  ratio,
  subtract,
  type Value,
} from './arithmetic/value.ts';
import { beginWork } from './arithmetic/work.ts';
import { ToolFailure } from './tool.ts';

const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻';
const CURRENCY = /[$€£¥]/g;

/** Notations of people and models and their plain forms, in the order of replacement. */
const PLAIN: readonly (readonly [RegExp, string | ((match: string) => string)])[] = [
  [
    /[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+/g,
    (match) => `^(${match.replace(/./g, (sign) => '0123456789+-'[SUPERSCRIPTS.indexOf(sign)]!)})`,
  ],
  // Full-width forms, as in 1+2.
  [/[！-～]/g, (match) => String.fromCharCode(match.charCodeAt(0) - 0xfee0)],
  [/\s+/g, ' '],
  [/[−–—]/g, '-'],
  [/[×⋅·∙•∗]|\\(?:times|cdot)\b/g, '*'],
  [/[÷∕⁄]|\\div\b/g, '/'],
  [/\\(?:left|right)\b|\\[,;:!]/g, ''],
  [/\{,\}/g, ','],
  [/\\(?=[a-z%$])/g, ' '],
  [/π/g, ' pi '],
  [/’/g, "'"],
  [/\*\*/g, '^'],
  [/% ?of /gi, '% * '],
  [/(?<=[\d)] ?)mod(?= ?\d)/gi, '%'],
  // A multiplication sign between numbers. 0x10 would be another number in many languages.
  [/(?<=[\d)!%] ?)(?<!(?<![\w.])0)x(?= ?[-\d.(√$€£¥])/gi, '*'],
];

/** Removes currency signs: 15 $ and $15 are 15. Different currencies can't be combined. */
function withoutCurrency(text: string): string {
  const signs = new Set(text.match(CURRENCY));
  if (signs.size > 1)
    throw new ToolFailure('The expression has more than one currency. Write plain numbers.');
  return text.replace(/(?<!\d ?)[$€£¥](?= ?[\d.(])|(?<=[\d)] ?)[$€£¥](?! ?[\d.(])/g, ' ');
}

/**
 * Converts an expression to plain characters, without an equals sign at its end. Throws
 * ToolFailure.
 */
function plain(expression: string): string {
  const text = PLAIN.reduce(
    (written, [pattern, by]) => written.replace(pattern, by as string),
    expression,
  );
  return withoutCurrency(text)
    .trim()
    .replace(/^ ?=|(?: ?=)? ?\??$/g, '')
    .trim();
}

/** Ends a calculation with a sentence for the model. */
const refuse = (message: string): never => {
  throw new ToolFailure(message);
};

/** A position in a text, which reading advances. */
interface Cursor {
  text: string;
  at: number;
  /** The next character that is not a space; '' at the end. */
  next(): string;
  /** Skips `sign` if it is the next character. */
  take(sign: string): boolean;
  /** Throws ToolFailure, which says why the next character is not expected. */
  unexpected(): never;
}

function createCursor(text: string): Cursor {
  const cursor: Cursor = {
    text,
    at: 0,
    next() {
      while (text[cursor.at] === ' ') cursor.at += 1;
      return text[cursor.at] ?? '';
    },
    take(sign) {
      if (cursor.next() !== sign) return false;
      cursor.at += 1;
      return true;
    },
    unexpected() {
      const character = cursor.next();
      if (character === '') return refuse(`The expression ends too early. ${ALLOWED}`);
      if (character === '=') return refuse('There may be = only at the end of the expression.');
      if (character === ',')
        return refuse(
          'A comma separates the arguments of a function, or thousands, as in 1,000. Write decimals with a point, as in 12.5.',
        );
      const remainingText = text.slice(cursor.at, cursor.at + 20).toWellFormed();
      return refuse(`${JSON.stringify(remainingText)} is not understood. ${ALLOWED}`);
    },
  };
  return cursor;
}

const NAME = /(?:math\.)?([a-z]+\d*)/iy;
const CLOSING: Readonly<Record<string, string>> = { '(': ')', '{': '}' };
/** The beginning of an operand, after which % is modulo. */
const OPERAND = /[\d.(√{a-z]/i;

/**
 * Evaluates while it parses, from the operators of lowest precedence, + and -, down to numbers and
 * parentheses.
 */
function evaluate(text: string): Value {
  const cursor = createCursor(text);
  const { next, take, unexpected } = cursor;
  let depth = 0;
  /** True directly within a function's parentheses, where commas separate. */
  let inCall = false;
  /**
   * The position of the last percentage, and whether the last factor was a juxtaposition such as
   * 2(3) or 2 pi.
   */
  let percentage = { start: -1, end: -1 };
  let juxtaposed = false;

  function nested<Result>(read: () => Result): Result {
    depth += 1;
    if (depth > LIMITS.arithmetic.depth) refuse('The expression is nested too deep.');
    const result = read();
    depth -= 1;
    return result;
  }

  /** Reads the content of parentheses or braces with `read`. */
  function enclosed<Result>(separating: boolean, read: () => Result): Result {
    const closing = CLOSING[next()] ?? unexpected();
    cursor.at += 1;
    const outer = inCall;
    inCall = separating;
    const result = nested(read);
    inCall = outer;
    if (!take(closing)) return unexpected();
    return result;
  }

  function call(name: string): Value {
    const operation = FUNCTIONS.get(name)!;
    const { least, most, run } = operation;
    const start = cursor.at;
    const values = enclosed(most > 1, () => {
      const args = [sum()];
      while (take(',')) args.push(sum());
      return args;
    });
    const written = text.slice(start, cursor.at);
    if (most > 1 && hasUnclearComma(written, least))
      return refuse(
        `The comma in ${name}${written} can be read in two ways. Write 1000 for 1,000, and a space after a comma between arguments.`,
      );
    if (values.length < least || values.length > most)
      return refuse(`${name} takes ${arity(operation)}.`);
    return run(...values);
  }

  function named(): Value {
    NAME.lastIndex = cursor.at;
    const [match, written] = NAME.exec(text) ?? unexpected();
    const name = written!.toLowerCase();
    const constant = CONSTANTS.get(name);
    if (name === 'frac' || FUNCTIONS.has(name)) {
      cursor.at += match.length;
      if (CLOSING[next()] === undefined) return refuse(`${name} needs parentheses: ${name}(…).`);
      return name === 'frac' ? divide(enclosed(false, sum), enclosed(false, sum)) : call(name);
    }
    if (!constant) return refuse(`"${match}" can't be used in an expression. ${ALLOWED}`);
    cursor.at += match.length;
    return constant();
  }

  function primary(): Value {
    const first = next();
    const number = numberAt(text, cursor.at, inCall);
    if (number) {
      cursor.at = number.end;
      return number.value;
    }
    if (first in CLOSING) return enclosed(false, sum);
    if (!take('√')) return named();
    const root = squareRoot(nested(primary));
    if ('^!'.includes(next()) && next() !== '')
      return refuse(`√ before ${next()} can be read in two ways. Write sqrt(…).`);
    return root;
  }

  /** A number with its postfix operators ! and %. */
  function postfix(): Value {
    next();
    const start = cursor.at;
    let value = primary();
    if (take('!')) value = next() === '!' ? refuse('!! is not understood.') : factorial(value);
    if (
      next() === '%' &&
      !OPERAND.test(
        text
          .slice(cursor.at + 1)
          .trimStart()
          .charAt(0),
      )
    ) {
      cursor.at += 1;
      value = divide(value, ratio(100n, 1n));
      next();
      percentage = { start, end: cursor.at };
    }
    return value;
  }

  function signed(): Value {
    if (take('-')) return negate(nested(signed));
    if (take('+')) return nested(signed);
    const base = postfix();
    return take('^') ? power(base, nested(signed)) : base;
  }

  /** Also 2(3) and 2 pi. */
  function factor(): Value {
    let value = signed();
    juxtaposed = false;
    while (/[(√{a-z]/i.test(next())) {
      value = multiply(value, signed());
      juxtaposed = true;
    }
    if (/^ *\.?\d/.test(text.slice(cursor.at, cursor.at + 3)))
      return refuse('Two numbers need a sign between them, such as *.');
    return value;
  }

  function product(): Value {
    let value = factor();
    for (;;) {
      if (take('*')) {
        value = multiply(value, factor());
        continue;
      }
      const sign = next();
      if (sign !== '/' && sign !== '%') return value;
      cursor.at += 1;
      const divisor = factor();
      if (juxtaposed)
        return refuse(`After ${sign}, write * and parentheses: 6/(2*(1+2)) or (6/2)*(1+2).`);
      value = sign === '/' ? divide(value, divisor) : modulo(value, divisor);
    }
  }

  /** A product, and whether it consists only of a percentage. */
  function term(): { value: Value; isPercentage: boolean } {
    next();
    const start = cursor.at;
    const value = product();
    next();
    return { value, isPercentage: percentage.start === start && percentage.end === cursor.at };
  }

  function sum(): Value {
    let { value, isPercentage } = term();
    for (;;) {
      const sign = next();
      if (sign !== '+' && sign !== '-') return value;
      cursor.at += 1;
      const right = term();
      // 200 + 10% may be 220, and 17 % -5 a remainder; 1 + 10% is 1.1 in any case.
      const isOne = isExact(value) && value.equals(1);
      if (isPercentage ? sign === '-' && !right.isPercentage : right.isPercentage && !isOne)
        return refuse(
          `The % beside ${sign} can be read in two ways. Write 200 * 1.1 or 200 + 0.1 for 200 + 10%, and mod(17, -5) for a remainder.`,
        );
      isPercentage &&= right.isPercentage;
      value = sign === '+' ? add(value, right.value) : subtract(value, right.value);
    }
  }

  const result = sum();
  return next() === '' ? result : unexpected();
}

/** Evaluates an expression and formats the result for the model. Throws ToolFailure. */
export function calculate(expression: string): string {
  beginWork();
  return print(evaluate(plain(expression)));
}
