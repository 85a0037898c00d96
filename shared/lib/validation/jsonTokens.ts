import { endOfString } from './jsonComplexity.ts';

/** The kinds of JSON tokens that have a text. */
type JsonTokenKind = 'name' | 'string' | 'number';

interface FoundToken {
  kind: JsonTokenKind;
  token: string;
  /**
   * JSON pointer of the value; for a name, of the object that has it. Instead of a long one, that of a
   * value around it.
   */
  path: string;
}

/** The items before the current one of a list, or the name of the current member as JSON. */
type Level = number | string;

const NO_NAME = '""';

/** A name may be as long as the text, and values may be nested as deep. */
const MAX_POINTER_CHARS = 500;

function pointerTo(levels: readonly Level[]): string {
  let pointer = '';
  for (const level of levels) {
    const name = typeof level === 'number' ? `${level}` : (JSON.parse(level) as string);
    const escaped = name.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1');
    if (pointer.length + escaped.length >= MAX_POINTER_CHARS) break;
    pointer += `/${escaped}`;
  }
  return pointer;
}

const isDigit = (character: string): boolean => character >= '0' && character <= '9';

function endOfNumber(text: string, start: number): number {
  let end = start + 1;
  while (end < text.length && (isDigit(text[end]!) || '-+.eE'.includes(text[end]!))) end += 1;
  return end;
}

/**
 * Finds the first name, string or number of valid JSON text that passes a test, as it is written in
 * the text. It shows what parsing changes, and takes no call stack for deep values.
 */
export function findJsonToken(
  text: string,
  isSought: (token: string, kind: JsonTokenKind) => boolean,
): FoundToken | undefined {
  const levels: Level[] = [];
  let isNameNext = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]!;
    if (character === '{' || character === '[') {
      isNameNext = character === '{';
      levels.push(isNameNext ? NO_NAME : 0);
    } else if (character === '}' || character === ']') {
      levels.pop();
      isNameNext = false;
    } else if (character === ',') {
      const level = levels.at(-1)!;
      isNameNext = typeof level === 'string';
      if (typeof level === 'number') levels[levels.length - 1] = level + 1;
    } else if (character === '"' || character === '-' || isDigit(character)) {
      const end = character === '"' ? endOfString(text, at) + 1 : endOfNumber(text, at);
      const token = text.slice(at, end);
      const kind = isNameNext ? 'name' : character === '"' ? 'string' : 'number';
      if (isSought(token, kind))
        return { kind, token, path: pointerTo(isNameNext ? levels.slice(0, -1) : levels) };
      if (isNameNext) levels[levels.length - 1] = token;
      isNameNext = false;
      at = end - 1;
    }
  }
  return undefined;
}

/** The sign, the digits without zeros at either end, and the exponent of the last digit. */
function decimalOf(number: string): string {
  const [mantissa = '', exponent = '0'] = number.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  let end = digits.length;
  // A pattern would take quadratic time for long runs of zeros.
  while (digits[end - 1] === '0') end -= 1;
  const sign = number.startsWith('-') ? '-' : '';
  if (end === 0) return sign;
  return `${sign}${digits.slice(0, end)}e${Number(exponent) - fraction.length + digits.length - end}`;
}

/** True when the double that a JSON number is parsed to is written as the same value. */
export function isExactNumber(token: string): boolean {
  const value = Number(token);
  const written = String(value);
  return written === token || (Number.isFinite(value) && decimalOf(token) === decimalOf(written));
}
