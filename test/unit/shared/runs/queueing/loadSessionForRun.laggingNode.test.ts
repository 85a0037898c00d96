import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LRUCache } from 'lru-cache';
import type { RunContext } from '../../../../../shared/runs/context.ts';
import { reserveCancellation } from '../../../../../shared/runs/cancelTurn.ts';
import {
  loadSessionForRun,
  toClientSessionError,
} from '../../../../../shared/runs/queueing/loadSessionForRun.ts';
import { appendEvents, NO_STREAM } from '../../../../../shared/eventlog/append.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { sessionStream } from '../../../../../shared/eventlog/streams.ts';
import type { EventStore } from '../../../../../shared/ports/eventStore.ts';
import { readSessionEvents } from '../../../../../shared/sessions/queries.ts';
import { lagging } from '../../../../support/fakes/laggingStore.ts';
import {
  AGENT_ID,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { eventStoreFixture } from '../../../../support/stores/sqlite/sqliteEventStore.ts';
import { ALL } from '../../../../support/stores/projections/agentsOf.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

const SESSION = 'session_01kahz0b2re5v8k2s4n6t8w0y2';
const ACCOUNT = 'acct_1';
const NOTHING = -1;

let fixture: Awaited<ReturnType<typeof eventStoreFixture>>;
beforeEach(async () => {
  fixture = await eventStoreFixture();
  const authorship = {
    account_id: ACCOUNT,
    key_id: 'k',
    request_id: 'r',
    causation_id: 'r',
    recorded_at: '2026-11-21T09:00:00.000Z',
  };
  const events = [sessionStarted(), turnStarted(1), turnCompleted(1)].map((event) => ({
    id: randomUUID(),
    ...event,
  }));
  await appendEvents(
    fixture.store(),
    { stream: sessionStream(SESSION), head: NO_STREAM },
    { events, authorship },
  );
});
afterEach(() => fixture.dispose());

/** The read models show the session up to revision 2. */
const contextOn = (store: EventStore): RunContext =>
  ({
    store,
    damaged: createDamagedStreams(() => undefined),
    runState: {
      sessionCache: new LRUCache({ max: 10 }),
    },
    memory: createMemoryLedger(),
    budget: { counter: { count: () => 1 }, turnTokens: new LRUCache({ max: 10 }) },
    readModels: {
      findSession: async (id: string) =>
        id === SESSION
          ? { session_id: SESSION, account_id: ACCOUNT, agent_id: AGENT_ID, revision: 2 }
          : undefined,
    },
  }) as unknown as RunContext;

const request = {
  actor: { account_id: ACCOUNT },
  agent: { agent_id: AGENT_ID },
  session_id: SESSION,
  new_session: false,
};
const BUDGET = { tokens: 100, bytes: 10_000, messages: 100 };
const patient = () => ({
  until: performance.now() + 60_000,
  signal: new AbortController().signal,
  setOrigins: () => undefined,
  reserve: () => undefined,
});
const goOn = (context: RunContext, bounds: Partial<ReturnType<typeof patient>> = {}) =>
  loadSessionForRun(context, request, BUDGET, { ...patient(), ...bounds });

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

describe('a run of a session that a node does not show yet', () => {
  test('goes on as soon as it does, and the stream is not damaged', async () => {
    const context = contextOn(lagging(fixture.store(), NOTHING, 1_200));
    expect([(await goOn(context)).head.revision, context.damaged.list()]).toEqual([2, []]);
  });

  test('is asked to come again where its time ends before that is certain', async () => {
    const context = contextOn(lagging(fixture.store(), NOTHING, Infinity));
    const ms = await timed(() =>
      expect(goOn(context, { until: performance.now() + 700 })).rejects.toMatchObject({
        code: 'store_unavailable',
        retriable: true,
      }),
    );
    expect([ms < 1_000, context.damaged.list()]).toEqual([true, []]);
  });

  test('ends with its signal', async () => {
    const context = contextOn(lagging(fixture.store(), NOTHING, Infinity));
    const reason = new Error('stopped');
    await expect(goOn(context, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  test('is refused after five seconds, and at once when it comes again: the stream is damaged', async () => {
    const context = contextOn(lagging(fixture.store(), NOTHING, Infinity));
    const refused = () => expect(goOn(context)).rejects.toMatchObject({ code: 'stream_damaged' });
    const ms = await timed(refused);
    expect([ms > 4_900, ms < 7_000, await timed(refused)]).toEqual([
      true,
      true,
      expect.any(Number),
    ]);
    expect(await timed(refused)).toBeLessThan(3_000);
  });
});

test('a session that nobody knows is not looked for again', async () => {
  const context = contextOn(fixture.store());
  const unknown = loadSessionForRun(
    context,
    { ...request, session_id: 'session_2' },
    BUDGET,
    patient(),
  );
  const ms = await timed(() =>
    expect(unknown).rejects.toMatchObject({ code: 'session_not_found' }),
  );
  expect(ms).toBeLessThan(3_000);
});

describe.each([
  ['the first page', {}, 3],
  ['a later page', { after: 0 }, 2],
])('%s of the events', (_which, after, rows) => {
  test.each([
    ['nothing of the session', NOTHING],
    ['only a part of it', 1],
  ])('waits for a node that shows %s', async (_what, lastShown) => {
    const context = contextOn(lagging(fixture.store(), lastShown, 1_200));
    const page = await readSessionEvents(context, ACCOUNT, SESSION, { ...ALL, ...after });
    expect([page.rows.length, context.damaged.list()]).toEqual([rows, []]);
  });
});

test('a cancellation that may come again is about the turn that there is, though a node shows none yet', async () => {
  const context = contextOn(lagging(fixture.store(), NOTHING, 300));
  const actor = { account_id: ACCOUNT, key_id: 'k', request_id: 'r' };
  expect(await reserveCancellation(context, actor, { session_id: SESSION })).toEqual({ turn: 1 });
});

test.each([
  [SESSION, false, 'stream_damaged'],
  ['session_new', true, 'stream_damaged'],
  ['session_of_another', false, 'session_not_found'],
])(
  'damage to %s, which the run begins: %s, is %s to its client',
  async (session_id, begins, code) => {
    const damage = new TurnlogError('stream_damaged', 'It is damaged.');
    const asked = { ...request, session_id, new_session: begins };
    const shown = await toClientSessionError(contextOn(fixture.store()), asked, damage);
    expect(shown).toMatchObject({ code });
  },
);
