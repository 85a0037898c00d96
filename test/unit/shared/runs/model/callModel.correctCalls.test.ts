import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { turnMessages } from '../../../../../shared/sessions/turns/prompt.ts';
import { correctInSlices } from '../../../../../shared/runs/model/callModel.ts';
import { SLICE_BYTES } from '../../../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { toolCallData } from '../../../../support/builders/events.ts';

/** The turns of the event loop in which arguments were parsed. */
let parsedAt: number[];
let counting: NodeJS.Immediate;
beforeEach(() => {
  let loopTurns = 0;
  const count = (): void => {
    loopTurns += 1;
    counting = setImmediate(count);
  };
  counting = setImmediate(count);
  parsedAt = [];
  const parse = JSON.parse;
  jest.spyOn(JSON, 'parse').mockImplementation((...args) => {
    parsedAt.push(loopTurns);
    return parse(...args);
  });
});
afterEach(() => {
  clearImmediate(counting);
  jest.restoreAllMocks();
});

/** A turn whose tool calls have these arguments, in one round each. */
const turnWith = (calls: readonly string[]) => ({
  turn: 1,
  input: 'hi',
  output: undefined,
  tool_calls: calls.map((args, at) => toolCallData(1, { round: at + 1, arguments: args })),
});
const requestOf = (turn: ReturnType<typeof turnWith>) => ({
  model: 'm',
  messages: turnMessages(turn),
});

const LARGE = JSON.stringify({ a: 'x'.repeat(SLICE_BYTES) });

test('the arguments of large calls are parsed in a step of the event loop each', async () => {
  const request = requestOf(turnWith([LARGE, LARGE, LARGE]));
  expect(await correctInSlices(request, 'acct_1')).toEqual({ request });
  expect(parsedAt).toHaveLength(3);
  expect(new Set(parsedAt).size).toBe(3);
});

test('the arguments of small calls after a large one are parsed in one step', async () => {
  await correctInSlices(requestOf(turnWith([LARGE, '{}', '{}', '{}'])), 'acct_1');
  expect(parsedAt).toHaveLength(4);
  expect(new Set(parsedAt).size).toBe(2);
});

test('the arguments of a turn are parsed once for all of its requests', async () => {
  const turn = turnWith(['{"a":1}', LARGE]);
  await correctInSlices(requestOf(turn), 'acct_1');
  turn.tool_calls.push(toolCallData(1, { round: 3, arguments: '{"b":2}' }));
  await correctInSlices(requestOf(turn), 'acct_1');
  expect(parsedAt).toHaveLength(3);
});

test('invalid arguments and names are corrected in each request of a turn', async () => {
  const turn = turnWith(['no JSON', '{"a":1}']);
  for (const _time of [1, 2]) {
    const { request, form } = await correctInSlices(requestOf(turn), 'acct_1');
    expect(form).toEqual({ corrected_calls: true });
    const sent = request.messages.flatMap((message) =>
      message.role === 'assistant' ? (message.tool_calls ?? []) : [],
    );
    expect(sent.map((call) => call.function.arguments)).toEqual(['{}', '{"a":1}']);
  }
});
