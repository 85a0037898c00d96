/** Exports show the arguments that the model sent, parsed or as their text. */
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseToolArguments } from '../../../../shared/exports/record.ts';
import { toolCallData } from '../../../support/builders/events.ts';
import { size } from '../../../support/jest/size.ts';

const RUNS = { numRuns: size({ small: 1_000, full: 50_000 }) };

const parsed = (text: string): object | undefined =>
  parseToolArguments(toolCallData(1, { arguments: text }));

const digits = fc.string({ unit: fc.constantFrom('0', '1', '2', '9'), maxLength: 20 });
const numbers = fc
  .tuple(fc.constantFrom('', '-'), fc.constantFrom('0', '1', '9007199254740993'), digits, digits)
  .map(([sign, whole, fraction, exponent]) =>
    [sign, whole, fraction && `.${fraction}`, exponent && `e${exponent.slice(-3)}`].join(''),
  );
const strings = fc
  .oneof(fc.string({ maxLength: 3 }), fc.constantFrom('a', 'b', '__proto__', '1'))
  .map((text) => JSON.stringify(text));
const space = fc.constantFrom('', ' ', '\n\t');

/** JSON text of objects whose names may repeat. */
const { texts } = fc.letrec<{ value: string; list: string; texts: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(numbers, strings, fc.constantFrom('true', 'null')),
    tie('list'),
    tie('texts'),
  ),
  list: fc.array(tie('value'), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
  texts: fc
    .array(fc.tuple(strings, space, tie('value')), { maxLength: 3 })
    .map((members) => `{${members.map(([n, gap, v]) => `${n}:${gap}${v}`).join(', ')}}`),
}));

/** A decimal as its sign and an integer: it has no other form. */
function exact(number: string): string {
  const [mantissa = '', exponent = '0'] = number.replace('-', '').split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const scaled =
    BigInt(whole + fraction) * 10n ** BigInt(1_000 + Number(exponent) - fraction.length);
  return `${number.startsWith('-') ? '-' : ''}${scaled}`;
}

/**
 * The names, values and brackets of JSON text without white space. They are sorted, as order is no part
 * of an object, and integers as names come first.
 */
const contentOf = (text: string): string[] =>
  text
    .match(/"(?:[^"\\]|\\.)*"|[-+.\w]+|[[\]{}:,]/g)!
    .map((token) => (/^-?\d/.test(token) ? exact(token) : token))
    .toSorted();

test('arguments that are parsed have the content of their text', () => {
  let read = 0;
  fc.assert(
    fc.property(texts, (text) => {
      const value = parsed(text);
      if (value === undefined) return;
      read += 1;
      expect(contentOf(JSON.stringify(value))).toEqual(contentOf(text));
    }),
    RUNS,
  );
  expect(read).toBeGreaterThan(RUNS.numRuns / 10);
});

test('arguments that a program writes as JSON are parsed', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })), (value) => {
      const text = JSON.stringify(value);
      expect(parsed(text)).toEqual(JSON.parse(text));
    }),
    RUNS,
  );
});
