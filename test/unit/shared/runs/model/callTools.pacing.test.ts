import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../../../shared/limits.ts';
import type { OpenRun } from '../../../../../shared/runs/context.ts';
import {
  callTools,
  createToolAllowance,
  type ToolCallContext,
} from '../../../../../shared/runs/model/callTools.ts';

const RUNS = 5;

/** The turns of the event loop in which the calls of runs begin that begin them at the same time. */
async function turnsOfCalls(args: string): Promise<Set<number>> {
  let turn = 0;
  const count = (): void => {
    turn += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const turns = new Set<number>();
  const failed = new Error('no result');
  async function call(): Promise<never> {
    turns.add(turn);
    throw failed;
  }
  const context = { catalogue: { toolbox: { call } } } as unknown as ToolCallContext;
  const run = {
    request: { actor: { account_id: 'a' }, agent: { tool: 'echo' } },
    state: { turn: 1 },
    settings: {},
  } as unknown as OpenRun;
  const tool_calls = [{ id: 'c', type: 'function', function: { name: 'echo', arguments: args } }];
  const answer = { tool_calls } as unknown as Parameters<typeof callTools>[1]['answer'];
  await Promise.all(
    Array.from({ length: RUNS }, () => {
      const round = { run, round: 1, answer, allowance: createToolAllowance(() => true) };
      const calling = callTools(context, round, new AbortController().signal);
      return expect(calling).rejects.toBe(failed);
    }),
  );
  clearImmediate(counting);
  return turns;
}

test('calls with long arguments, which take long to parse, begin one by one', async () => {
  const long = 'x'.repeat(LIMITS.tool.pacedArgumentsChars);
  expect((await turnsOfCalls(long)).size).toBe(RUNS);
});

test('a call with short arguments begins at once', async () => {
  expect([...(await turnsOfCalls('{}'))]).toEqual([0]);
});
