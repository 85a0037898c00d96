import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { appendEvents, headOf, NO_STREAM } from '../../../../../shared/eventlog/append.ts';
import { decodeEvent } from '../../../../../shared/eventlog/codec.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { commitEventTexts } from '../../../../../shared/eventlog/encryption/sealTexts.ts';
import { sessionStream } from '../../../../../shared/eventlog/streams.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { createLogger } from '../../../../../shared/lib/logger.ts';
import { KIB } from '../../../../../shared/lib/units.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import type { OpenRun } from '../../../../../shared/runs/context.ts';
import {
  callTools,
  createToolAllowance,
  type ToolCallContext,
} from '../../../../../shared/runs/model/callTools.ts';
import {
  AGENT_ID,
  sessionStarted,
  turnStartData,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { eventStoreFixture } from '../../../../support/stores/sqlite/sqliteEventStore.ts';

/** Tools that need no time end while an append takes this long. */
const APPEND_MS = 20;

const STREAM = sessionStream('session_1');
const actor = { account_id: 'acct_1', key_id: 'k', request_id: 'r' };

let fixture: Awaited<ReturnType<typeof eventStoreFixture>>;
/** The number of events of each append. */
let appends: number[];
beforeEach(async () => {
  fixture = await eventStoreFixture();
  appends = [];
});
afterEach(() => fixture.dispose());

/** Begins a turn whose tool returns its arguments after `delayMs`. */
async function beginTurn(delayMs: (args: string) => number) {
  const store = fixture.store();
  const authorship = { ...actor, causation_id: 'r', recorded_at: '2026-11-21T09:00:00.000Z' };
  const begun = [sessionStarted(), turnStarted(1)].map((event) => ({ id: randomUUID(), ...event }));
  const sealed = await commitEventTexts(store.keys, undefined, begun);
  await appendEvents(store, { stream: STREAM, head: NO_STREAM }, { ...sealed, authorship });
  const page = { direction: 'forwards', limit: 10 } as const;
  const last = (await store.readStream(STREAM, page)).at(-1)!;
  const published: string[] = [];
  const context = {
    store: {
      ...store,
      append: async (...args: Parameters<typeof store.append>) => {
        appends.push(args[2].length);
        await sleep(APPEND_MS);
        return store.append(...args);
      },
    },
    damaged: createDamagedStreams(() => undefined),
    clock: { now: () => Date.UTC(2026, 10, 21) },
    ids: { uuid: randomUUID },
    logger: createLogger('silent'),
    readModels: {},
    catalogue: {
      toolbox: {
        call: async (_: string, { arguments: args }: { arguments: string }) => {
          if (delayMs(args) > 0) await sleep(delayMs(args));
          return { result: args.slice(0, LIMITS.tool.resultBytes), is_error: false };
        },
      },
    },
  } as unknown as ToolCallContext;
  const { owner, deadline } = turnStartData;
  const run = {
    request: { actor, session_id: 'session_1', agent: { tool: 'echo' } },
    causation_id: 'c',
    head: headOf(decodeEvent(last)),
    state: { status: 'running', agent_id: AGENT_ID, turn: 1, owner, deadline },
    settings: {},
    turn: { tool_calls: [] },
    publisher: { publishToolCall: ({ call_id }: { call_id: string }) => published.push(call_id) },
  } as unknown as OpenRun;
  return { context, run, published };
}

async function call(
  { context, run }: Awaited<ReturnType<typeof beginTurn>>,
  texts: readonly string[],
): Promise<void> {
  const tool_calls = texts.map((text, index) => ({
    id: `call_${index}`,
    type: 'function' as const,
    function: { name: 'echo', arguments: text },
  }));
  const answer = { content: 'Wait.', tool_calls } as unknown as Parameters<
    typeof callTools
  >[1]['answer'];
  const round = { run, round: 1, answer, allowance: createToolAllowance(() => true) };
  await callTools(context, round, new AbortController().signal);
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `call_${index}`);

test('calls that end while others are recorded are recorded together, in the order of the model', async () => {
  const turn = await beginTurn(() => 0);
  await call(
    turn,
    names(24).map(() => 'x'),
  );
  expect(turn.published).toEqual(names(24));
  expect(turn.run.turn.tool_calls.map(({ content }) => content)).toEqual([
    'Wait.',
    ...Array.from({ length: 23 }),
  ]);
  expect(appends.reduce((sum, events) => sum + events)).toBe(24);
  expect(appends.length).toBeLessThan(8);
});

test('a call that has not ended delays only those after it', async () => {
  const turn = await beginTurn((args) => (args === 'slow' ? 200 : 0));
  await call(turn, ['x', 'x', 'slow', 'x', 'x']);
  expect(turn.published).toEqual(names(5));
  expect(appends.at(-1)).toBe(3);
});

test('an append of several calls is limited in bytes', async () => {
  const turn = await beginTurn(() => 0);
  await call(
    turn,
    names(6).map(() => 'é'.repeat(60_000)),
  );
  expect(turn.published).toEqual(names(6));
  // Arguments and result have 240 kB.
  expect(Math.max(...appends)).toBe(2);
});

test('a call is made only if it can be recorded with the longest result', async () => {
  const made: number[] = [];
  const turn = await beginTurn((args) => made.push(args.length) * 0);
  const longest = 740 * KIB - LIMITS.tool.resultBytes - 'call_1echo'.length;
  await expect(call(turn, ['x', 'x'.repeat(longest + 1)])).rejects.toMatchObject({
    code: 'event_invalid',
  });
  expect([made, appends]).toEqual([[], []]);
  await call(turn, ['x', 'x'.repeat(longest)]);
  expect([made, appends]).toEqual([
    [1, longest],
    [1, 1],
  ]);
});

test('no call is made of an answer whose calls are too long for the turn', async () => {
  const made: string[] = [];
  const turn = await beginTurn((args) => made.push(args) * 0);
  const texts = names(5).map(() => 'x'.repeat(500 * KIB));
  await expect(call(turn, texts)).rejects.toMatchObject({ code: 'tool_error' });
  expect(made).toEqual([]);
});

test('calls of a store that was unavailable for a moment are recorded', async () => {
  const turn = await beginTurn(() => 0);
  const { store } = turn.context;
  const { append } = store;
  store.append = () => {
    store.append = append;
    return Promise.reject(storeUnavailableError('No answer.'));
  };
  await call(turn, ['x', 'x']);
  expect(turn.published).toEqual(names(2));
});
