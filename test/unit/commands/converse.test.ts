import { randomUUID } from 'node:crypto';
import { beforeEach, expect, test } from '@jest/globals';
import { converse } from '../../../shared/commands/run/converse.ts';
import { createLiveTurns } from '../../../shared/commands/run/liveTurns.ts';
import type { OpenRun, RunContext } from '../../../shared/commands/run/context.ts';
import type { ModelCall } from '../../../shared/domain/session/events.ts';
import { createDamagedStreams } from '../../../shared/eventlog/damagedStreams.ts';
import { createLogger } from '../../../shared/logger.ts';
import type { ChatAnswer } from '../../../shared/ports/chatModel.ts';
import type { ToolResult } from '../../../shared/ports/toolbox.ts';
import { AGENT_ID, turnStartData } from '../../support/events/events.ts';
import { memoryKeys } from '../../support/store/memoryKeys.ts';

const reason = new Error('the time is over');

let abort: AbortController;
let recorded: number;
let toolCalls: number;
let answers: number;
let answer: ChatAnswer;
let tool: string | null;
let callTool: () => Promise<ToolResult>;
let counted: () => Promise<number>;
let whileRecording: () => void;

beforeEach(() => {
  abort = new AbortController();
  [recorded, toolCalls, answers, tool] = [0, 0, 0, 'calculator'];
  callTool = async () => ({ result: '2', is_error: false });
  counted = async () => 1;
  whileRecording = () => undefined;
  answer = {
    response_id: 'r',
    model: 'm',
    content: null,
    tool_calls: Array.from({ length: 100 }, (_, index) => ({
      id: `c${index}`,
      type: 'function',
      function: { name: 'calculator', arguments: '{}' },
    })),
    finish_reason: 'tool_calls',
    tokens: { prompt: 1, completion: 1, total: 2 },
  };
});

/** A run whose model, tool and store answer at once. */
function converseNow(): Promise<unknown> {
  const context = {
    store: {
      keys: memoryKeys().keys,
      append: async () => {
        recorded += 1;
        whileRecording();
        return { position: '1' };
      },
    },
    damaged: createDamagedStreams(() => undefined),
    catalogue: {
      models: {
        complete: async () => {
          answers += 1;
          return answer;
        },
      },
      toolbox: {
        call: () => {
          toolCalls += 1;
          return callTool();
        },
      },
    },
    budget: { counter: { count: () => counted() } },
    clock: { now: () => 0 },
    ids: { uuid: randomUUID },
    logger: createLogger('silent'),
  } as unknown as RunContext;
  const { owner, deadline, settings } = turnStartData;
  const run = {
    request: {
      actor: { account_id: 'a', key_id: 'k', request_id: 'r' },
      session_id: 's',
      agent: { instruction: 'Be brief.', model: 'm', tool },
    },
    settings,
    history: [],
    turn: { turn: 1, input: 'go', tool_calls: [], output: undefined },
    causation_id: 'c',
    head: { revision: 1, hash: '0'.repeat(64) },
    live: createLiveTurns().begin({ account_id: 'a', session_id: 's', turn: 1 }, false),
    state: { status: 'running', agent_id: AGENT_ID, turn: 1, owner, deadline },
    startedAt: 0,
  } as unknown as OpenRun;
  const calls: ModelCall[] = [];
  return converse(context, run, calls, abort.signal);
}

test.each([
  ['of an agent with a tool', 'calculator'],
  ['of an agent without one', null],
])('tool calls %s that resolve at once leave the time limit its turn', async (_, agentTool) => {
  tool = agentTool;
  // A turn of the event loop that only comes when the run lets it.
  setImmediate(() => abort.abort(reason));
  await expect(converseNow()).rejects.toBe(reason);
  expect(recorded).toBeLessThan(10);
});

test('a tool call that ended is recorded though the time is over, and nothing is called after it', async () => {
  whileRecording = () => abort.abort(reason);
  await expect(converseNow()).rejects.toBe(reason);
  expect([answers, toolCalls, recorded]).toEqual([1, 1, 1]);
});

test('no further answer is asked for when the time is over', async () => {
  answer = { ...answer, tool_calls: answer.tool_calls.slice(0, 1) };
  whileRecording = () => abort.abort(reason);
  await expect(converseNow()).rejects.toBe(reason);
  expect([answers, toolCalls, recorded]).toEqual([1, 1, 1]);
});

test('a tool that does not look at the signal does not hold the run', async () => {
  callTool = () => new Promise(() => undefined);
  setImmediate(() => abort.abort(reason));
  await expect(converseNow()).rejects.toBe(reason);
  expect([toolCalls, recorded]).toEqual([1, 0]);
});

test('counting tokens for a provider that does not does not hold the run', async () => {
  answer = { ...answer, tokens: undefined };
  counted = () => new Promise(() => undefined);
  setImmediate(() => abort.abort(reason));
  await expect(converseNow()).rejects.toBe(reason);
  expect([answers, recorded]).toEqual([1, 0]);
});
