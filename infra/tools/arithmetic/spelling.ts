import { ToolFailure } from '../tool.ts';

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
export function plain(expression: string): string {
  const text = PLAIN.reduce(
    (written, [pattern, by]) => written.replace(pattern, by as string),
    expression,
  );
  return withoutCurrency(text)
    .trim()
    .replace(/^ ?=|(?: ?=)? ?\??$/g, '')
    .trim();
}
