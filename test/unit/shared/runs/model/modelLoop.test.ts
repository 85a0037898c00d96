import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { runModelLoop } from '../../../../../shared/runs/model/modelLoop.ts';
import { createLiveTurns } from '../../../../../shared/runs/live/liveTurns.ts';
import {
  createHeldAnswers,
  type HeldAnswers,
} from '../../../../../shared/runs/model/heldAnswers.ts';
import type { OpenRun, RunContext } from '../../../../../shared/runs/context.ts';
import type { ModelCall } from '../../../../../shared/sessions/turns/promptParts.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { createLogger } from '../../../../../shared/lib/logger.ts';
import type { ChatAnswer, ModelCaller } from '../../../../../shared/ports/chatModel.ts';
import type { EncodedEvent } from '../../../../../shared/ports/eventStore.ts';
import type { TurnWrite } from '../../../../../shared/ports/readModels.ts';
import type { FunctionCall, ToolResult } from '../../../../../shared/ports/toolbox.ts';
import { AGENT_ID, turnStartData } from '../../../../support/builders/events.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

const reason = new Error('the time is over');

const settled = () => new Promise((resolve) => setTimeout(resolve, 20));
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate);
}

let abort: AbortController;
let recorded: number;
/** The positions that reads wait for. */
let awaited: TurnWrite[];
let toolCalls: number;
let answers: number;
/** The memory of the run, and the number of answers whose memory was released. */
let held: HeldAnswers;
let released: number;
let answer: ChatAnswer;
let tool: string | null;
let callTool: (wanted: FunctionCall, signal: AbortSignal) => Promise<ToolResult>;
let counted: () => Promise<number>;
let whileRecording: (data: Record<string, unknown>) => void;

beforeEach(() => {
  abort = new AbortController();
  [recorded, toolCalls, answers, released, tool] = [0, 0, 0, 0, 'calculator'];
  held = createHeldAnswers();
  awaited = [];
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

/** The data of an event, with its texts. */
function withTexts({ data, toClose }: EncodedEvent): Record<string, unknown> {
  const texts = new Map(toClose?.texts.map(({ sha256, text }) => [sha256, text]));
  return JSON.parse(data, (_, value: unknown) =>
    typeof value === 'object' && value !== null && 'sha256' in value
      ? texts.get(value.sha256 as string)
      : value,
  ) as Record<string, unknown>;
}

/** A run whose model, tool and store answer at once. */
function converseNow(): Promise<unknown> {
  const context = {
    store: {
      keys: memoryKeys().keys,
      append: async (_stream: string, _revision: number, events: readonly EncodedEvent[]) => {
        for (const event of events) {
          recorded += 1;
          whileRecording(withTexts(event));
        }
        return { position: String(recorded) };
      },
    },
    readModels: { showLater: (write: TurnWrite) => awaited.push(write) },
    damaged: createDamagedStreams(() => undefined),
    catalogue: {
      models: {
        complete: async (
          _model: string,
          _request: object,
          _signal: AbortSignal,
          by: ModelCaller,
        ) => {
          answers += 1;
          by.hold?.(() => (released += 1));
          return answer;
        },
      },
      toolbox: {
        call: (_names: string, wanted: FunctionCall, signal: AbortSignal) => {
          toolCalls += 1;
          return callTool(wanted, signal);
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
    publisher: createLiveTurns().begin({ account_id: 'a', session_id: 's', turn: 1 }, false),
    state: { status: 'running', agent_id: AGENT_ID, turn: 1, owner, deadline },
    startedAt: 0,
    reserveBytes: () => true,
    held,
  } as unknown as OpenRun;
  const calls: ModelCall[] = [];
  return runModelLoop(context, run, calls, abort.signal);
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

test('tool calls that ended are recorded though the time is over, and nothing is called after it', async () => {
  whileRecording = () => abort.abort(reason);
  await expect(converseNow()).rejects.toBe(reason);
  expect([answers, toolCalls, recorded]).toEqual([1, 8, 8]);
});

test('reads of the session wait for the tool calls that were recorded', async () => {
  answer = { ...answer, tool_calls: answer.tool_calls.slice(0, 2) };
  whileRecording = () => {
    if (recorded === 2) answer = { ...answer, content: 'Done.', tool_calls: [] };
  };
  await converseNow();
  const write = { account_id: 'a', session_id: 's' };
  expect(awaited).toEqual([
    { ...write, position: '1' },
    { ...write, position: '2' },
  ]);
});

describe('the calls of one answer', () => {
  const ended: (() => void)[] = [];
  const names: string[] = [];
  const signals: AbortSignal[] = [];

  beforeEach(() => {
    for (const list of [ended, names, signals]) list.length = 0;
    callTool = (wanted, signal) => {
      signals.push(signal);
      return new Promise((resolve) =>
        ended.push(() => resolve({ result: wanted.name, is_error: false })),
      );
    };
    answer = {
      ...answer,
      content: 'Let me see.',
      tool_calls: Array.from({ length: 12 }, (_, index) => ({
        id: `c${index}`,
        type: 'function',
        function: { name: `f${index}`, arguments: '{}' },
      })),
    };
    whileRecording = (data) => names.push(data['tool'] as string);
  });

  test('go side by side, eight at a time, and are recorded in their order', async () => {
    const conversing = converseNow();
    conversing.catch(() => undefined);
    await until(() => ended.length === 8);
    for (const end of ended.slice(1).toReversed()) end();
    await settled();
    expect([names, ended.length]).toEqual([[], 8]);
    ended[0]!();
    await until(() => ended.length === 12);
    answer = { ...answer, content: 'Done.', tool_calls: [] };
    for (const end of ended.slice(8)) end();
    await expect(conversing).resolves.toMatchObject({ output: 'Done.' });
    expect(names).toEqual(Array.from({ length: 12 }, (_, index) => `f${index}`));
  });

  test('that ended are recorded when the run is cut off, and the others are stopped', async () => {
    const contents: unknown[] = [];
    whileRecording = (data) => {
      names.push(data['tool'] as string);
      contents.push(data['content']);
    };
    const conversing = converseNow();
    conversing.catch(() => undefined);
    await until(() => ended.length === 8);
    ended[5]!();
    ended[2]!();
    await settled();
    abort.abort(reason);
    await expect(conversing).rejects.toBe(reason);
    expect(names).toEqual(['f2', 'f5']);
    expect(contents.map((content) => content !== undefined)).toEqual([true, false]);
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });

  test('may fail each on its own', async () => {
    callTool = async ({ name }) =>
      name === 'f1' ? { result: 'no', is_error: true } : { result: 'yes', is_error: false };
    const errors: unknown[] = [];
    whileRecording = (data) => {
      errors.push(data['is_error']);
      answer = { ...answer, tool_calls: [] };
    };
    await expect(converseNow()).resolves.toBeDefined();
    expect(errors).toEqual(Array.from({ length: 12 }, (_, index) => index === 1));
  });

  test('whose results go beyond what a turn may record end the run, and what ended is recorded', async () => {
    callTool = async () => ({ result: 'x'.repeat(300_000), is_error: false });
    await expect(converseNow()).rejects.toMatchObject({ code: 'tool_error' });
    expect(names.length).toBeGreaterThan(7);
    expect(names.length).toBeLessThan(13);
  });
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

describe('the memory of an answer', () => {
  test('is held until its calls are recorded, that of the last one until the run releases it', async () => {
    answer = { ...answer, tool_calls: answer.tool_calls.slice(0, 2) };
    const whileCalls: number[] = [];
    whileRecording = () => {
      whileCalls.push(released);
      if (recorded === 2) answer = { ...answer, content: 'Done.', tool_calls: [] };
    };
    await converseNow();
    expect([whileCalls, answers, released]).toEqual([[0, 0], 2, 1]);
    held.release();
    expect(released).toBe(2);
  });

  test('is held until its tokens are counted, though the run was cut off', async () => {
    answer = { ...answer, tokens: undefined };
    const count = Promise.withResolvers<number>();
    counted = () => count.promise;
    setImmediate(() => abort.abort(reason));
    await expect(converseNow()).rejects.toBe(reason);
    held.release();
    await settled();
    expect(released).toBe(0);
    count.resolve(1);
    await settled();
    expect(released).toBe(1);
  });
});
