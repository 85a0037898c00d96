import { afterEach, expect, jest, test } from '@jest/globals';
import { createStreamedAnswerReader } from '../../../../../infra/openai/answers/streamedAnswer.ts';
import { LIMITS } from '../../../../../shared/limits.ts';

const memory = {
  reserve: (bytes?: number) => bytes,
  release: () => undefined,
};
const openReader = () => createStreamedAnswerReader({ onText: () => undefined }, memory);

/** Most JSON texts that are parsed in one step. */
const MOST_PARSED = 5_000;

function chunkOf(calls: object[], finish_reason: string | null = null): Buffer {
  const choices = [{ index: 0, delta: { tool_calls: calls }, finish_reason }];
  return Buffer.from(`data: ${JSON.stringify({ id: 'a', model: 'm', choices })}\n\n`);
}
const END = chunkOf([], 'tool_calls');

interface Completion {
  choices: { message: { tool_calls: { function: object }[] } }[];
}
const callsIn = (answer: unknown) =>
  (JSON.parse(answer as string) as Completion).choices[0]!.message.tool_calls;

afterEach(() => {
  jest.restoreAllMocks();
});

test('fields of a call that arrive in thousands of parts are joined', () => {
  const reader = openReader();
  reader.add(chunkOf([{ index: 0, id: 'c', function: { name: 'f' } }]));
  for (let part = 0; part < 1_000; part += 1)
    reader.add(chunkOf([{ index: 0, [`f${part}`]: part, function: { [`g${part}`]: part } }]));
  reader.add(END);
  const [call] = callsIn(reader.end());
  expect(call).toMatchObject({ id: 'c', f0: 0, f99: 99, function: { name: 'f', g0: 0, g99: 99 } });
});

test('fields of all calls of an answer are joined in a few thousand steps', () => {
  const reader = openReader();
  for (let index = 0; index < LIMITS.run.toolCalls; index += 1) {
    reader.add(chunkOf([{ index, id: `c${index}`, x: index, function: { name: 'f' } }]));
    reader.add(chunkOf(Array.from({ length: 200 }, () => ({ index, x: index }))));
  }
  reader.add(END);
  const parse = jest.spyOn(JSON, 'parse');
  const answer = reader.end();
  expect(parse.mock.calls.length).toBeLessThan(MOST_PARSED);
  parse.mockRestore();
  const calls = callsIn(answer);
  expect(calls).toHaveLength(LIMITS.run.toolCalls);
  expect(calls[0]).toMatchObject({ id: 'c0', x: 0 });
});

test('the arguments of a complete call are parsed once, however often its id comes again', () => {
  const reader = openReader();
  const long = JSON.stringify({ list: Array.from({ length: 10_000 }, () => 0) });
  const begun = { id: 'c', function: { name: 'f', arguments: '{' } };
  reader.add(chunkOf([{ ...begun, function: { name: 'f', arguments: long } }]));
  const parse = jest.spyOn(JSON, 'parse');
  expect(reader.add(chunkOf(Array.from({ length: LIMITS.run.toolCalls }, () => begun)))).toBe(
    undefined,
  );
  expect(parse.mock.calls.filter(([text]) => text === long)).toHaveLength(1);
  parse.mockRestore();
  reader.add(END);
  expect(callsIn(reader.end())).toHaveLength(LIMITS.run.toolCalls + 1);
});

test('a chunk with parts of all calls parses no more arguments than one call may have', () => {
  const reader = openReader();
  const half = LIMITS.model.argumentsChars / 2 - 10;
  const nested = `{"a":${'['.repeat(half)}${']'.repeat(half)}}`;
  const calls = Array.from({ length: 7 }, (_, index) => ({ index, id: `c${index}` }));
  for (const call of calls)
    reader.add(chunkOf([{ ...call, function: { name: 'f', arguments: nested } }]));
  const parse = jest.spyOn(JSON, 'parse');
  const parts = calls.map(({ index }) => ({ index, function: { name: 'f', arguments: '{' } }));
  expect(reader.add(chunkOf(parts))).toBe(undefined);
  expect(parse.mock.calls.filter(([text]) => text === nested)).toHaveLength(1);
});

test('the arguments of all calls together are no longer than an answer', () => {
  const reader = openReader();
  const { answerBytes, argumentsChars } = LIMITS.model;
  const long = 'x'.repeat(argumentsChars);
  const add = (index: number) =>
    reader.add(chunkOf([{ index, id: `c${index}`, function: { name: 'f', arguments: long } }]));
  const most = answerBytes / argumentsChars;
  for (let index = 0; index < most; index += 1) expect(add(index)).toBeUndefined();
  expect(add(most)).toMatchObject({ code: 'model_error' });
});

test('a later usage without counts leaves the reported one', () => {
  const reader = openReader();
  const counts = { prompt_tokens: 1, completion_tokens: 2 };
  for (const usage of [counts, null, { prompt_tokens: 'many' }])
    reader.add(Buffer.from(`data: ${JSON.stringify({ choices: [], usage })}\n\n`));
  reader.add(END);
  expect(JSON.parse(reader.end() as string)).toMatchObject({ usage: counts });
});

test('an event may have all calls of an answer with their fields, or the longest arguments', () => {
  const signed = { extra_content: { google: { thought_signature: 'x'.repeat(400) } } };
  const calls = Array.from({ length: LIMITS.run.toolCalls }, (_, index) => {
    const called = { name: 'f', arguments: '{"list":[1,2,3,4,5,6,7,8]}' };
    return { index, id: `c${index}`, type: 'function', function: called, ...signed };
  });
  const reader = openReader();
  expect(reader.add(chunkOf(calls, 'tool_calls'))).toBe(undefined);
  expect(callsIn(reader.end())).toHaveLength(calls.length);
  const { argumentsChars } = LIMITS.model;
  const list = JSON.stringify({ list: '1,'.repeat((argumentsChars - 20) / 2) });
  const long = { index: 0, id: 'c', function: { name: 'f', arguments: list } };
  const other = openReader();
  expect(other.add(chunkOf([long], 'tool_calls'))).toBe(undefined);
  expect(callsIn(other.end())).toMatchObject([{ function: { arguments: list } }]);
});

test('an event with thousands of parts, which would be read in one step, ends the answer', () => {
  const parts = Array.from({ length: 1_500 }, () => ({ id: 'c' }));
  expect(openReader().add(chunkOf(parts))).toMatchObject({
    message: "The model provider's answer has too many parts.",
  });
});

test('a part finds its call by the id without a look at each call', () => {
  const reader = openReader();
  const ids = Array.from({ length: LIMITS.run.toolCalls }, (_, index) => `${index}`.padStart(190));
  reader.add(chunkOf(ids.map((id) => ({ id, function: { name: 'f' } }))));
  const find = jest.spyOn(Array.prototype, 'find');
  reader.add(chunkOf(ids.map((id) => ({ id, function: { arguments: '{}' } }))));
  expect(find.mock.calls.length).toBeLessThan(5);
  find.mockRestore();
  reader.add(END);
  expect(callsIn(reader.end())).toHaveLength(ids.length);
});

test('fields are written as JSON once, and no longer when they are over their limit', () => {
  const reader = openReader();
  const part = { index: 0, x: 'x'.repeat(LIMITS.model.callFieldsChars - 10) };
  reader.add(chunkOf([{ index: 0, id: 'c', function: { name: 'f' } }]));
  const twenty = chunkOf(Array.from({ length: 20 }, () => part));
  const stringify = jest.spyOn(JSON, 'stringify');
  reader.add(twenty);
  expect(stringify).toHaveBeenCalledTimes(5);
  stringify.mockRestore();
});
