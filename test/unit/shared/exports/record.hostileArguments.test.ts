/** Whatever a model sends as the arguments of a tool call, the readers of exports take the session. */
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { SESSION_WRITERS } from '../../../../shared/exports/formats.ts';
import { parseToolArguments } from '../../../../shared/exports/record.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import {
  modelCall,
  toolCallData,
  toolCalled,
  turnCompleted,
  turnStarted,
} from '../../../support/builders/events.ts';
import { agent, session, turnsOf, written } from '../../../support/processes/exports/written.ts';

afterEach(() => {
  jest.restoreAllMocks();
});

const FORMATS = ['openai-chat', 'otel', 'inspect', 'atif'] as const;

/** A list within as many others, in an object. */
const nested = (lists: number): string => `{"a":${'['.repeat(lists)}${']'.repeat(lists)}}`;

const exported = (format: (typeof FORMATS)[number], text: string): string =>
  written(
    format,
    turnsOf(
      turnStarted(1),
      toolCalled(1, { round: 1, arguments: text }),
      turnCompleted(1, { calls: [modelCall, modelCall] }),
    ),
  );

const HOSTILE = {
  'that are nested 20,000 deep': nested(20_000),
  'with half of a surrogate pair': '{"q":"\\ud83d"}',
  'with half of a surrogate pair in a name': '{"list":[{"\\ud83d":1}]}',
  'with a number beyond a double': '{"n":[1e999]}',
  'with an integer that no double holds': '{"id":12345678901234567890}',
  'with a negative zero': '{"n":-0}',
  'with a repeated name': '{"a":1,"a":2}',
  'with a repeated name, once escaped, in a list': '{"l":[{"a":1,"\\u0061":1}]}',
  'with as many values as fit': `{"a":[${'0,'.repeat(LIMITS.model.argumentsChars / 2 - 5)}0]}`,
};

/** All strings of a JSON text, names among them. */
function stringsOf(text: string): string[] {
  const strings: string[] = [];
  JSON.parse(text, (name, value: unknown) => {
    strings.push(name, ...(typeof value === 'string' ? [value] : []));
    return value;
  });
  return strings;
}

describe.each(FORMATS)('%s', (format) => {
  test.each(Object.entries(HOSTILE))('has the text of arguments %s', (_what, text) => {
    const strings = stringsOf(exported(format, text));
    expect(strings.some((one) => one.endsWith(text))).toBe(true);
    expect(strings.every((one) => one.isWellFormed())).toBe(true);
  });

  test('has no other arguments than the model sent', () => {
    const text = exported(format, '{"id":12345678901234567890,"a":1,"a":2}');
    expect(text).not.toMatch(/12345678901234567000/);
  });
});

test.each(
  FORMATS.flatMap((format) =>
    [JSON.stringify({ a: 'x'.repeat(200_000) }), '{"a":1}', '[0]'].map(
      (args) => [format, args] as const,
    ),
  ),
)('%s is written in short pieces, which parse one tool call each: %.9s', (format, args) => {
  const data = { round: 1, arguments: args };
  const [turn] = turnsOf(
    turnStarted(1, { input: '\u0001'.repeat(500_000) }),
    ...Array.from({ length: 8 }, () => toolCalled(1, data)),
    turnCompleted(1, { calls: [modelCall, modelCall] }),
  );
  const parse = jest.spyOn(JSON, 'parse');
  for (const piece of SESSION_WRITERS[format](session).add(turn!, agent)) {
    expect(piece.length).toBeLessThan(150_000);
    expect(parse.mock.calls.length).toBeLessThanOrEqual(1);
    parse.mockClear();
  }
});

test.each([
  ['inspect', `"arguments":{},"parse_error":"Not read as a JSON object: {\\"n\\":1e999}"`],
  ['atif', `"arguments":{},"extra":{"duration_ms":3,"arguments_text":"{\\"n\\":1e999}"}`],
] as const)('%s says that arguments were not read', (format, said) => {
  expect(exported(format, '{"n":1e999}')).toContain(said);
});

test('arguments are read up to a number of values, and no further', () => {
  const read = (values: number): unknown =>
    parseToolArguments(toolCallData(1, { arguments: `{"a":[${'0,'.repeat(values)}0]}` }));
  // A brace and a bracket count, too.
  const most = LIMITS.export.argumentsValues - 2;
  expect(read(most)).toEqual({ a: Array.from({ length: most + 1 }, () => 0) });
  expect(read(most + 1)).toBeUndefined();
});

test('arguments are read down to a depth, and no further', () => {
  const read = (lists: number): unknown =>
    parseToolArguments(toolCallData(1, { arguments: nested(lists) }));
  const deepest = LIMITS.export.argumentsDepth - 1;
  expect([read(deepest), read(deepest + 1)]).toEqual([JSON.parse(nested(deepest)), undefined]);
});

test('arguments of all other kinds are read', () => {
  const text = '{"t":"\\ud834\\udd1e","n":-0.5,"i":1.0e2,"b":true,"x":null,"l":[{"ä":1},{"ä":1}]}';
  expect(parseToolArguments(toolCallData(1, { arguments: text }))).toEqual(JSON.parse(text));
});
