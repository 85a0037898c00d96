import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { loadSession } from '../../../../../shared/sessions/history/loadSession.ts';
import { originsInPrompt } from '../../../../../shared/sessions/history/origins.ts';
import type { ForkedFrom, SessionEvent } from '../../../../../shared/sessions/events.ts';
import { appendEvents, NO_STREAM, type StreamHead } from '../../../../../shared/eventlog/append.ts';
import {
  createDamagedStreams,
  type DamagedStreams,
} from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { sessionStream } from '../../../../../shared/eventlog/streams.ts';
import { verifyChains } from '../../../../../shared/eventlog/reading/verifyChains.ts';
import {
  AGENT_ID,
  sessionCompacted,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../../support/stores/sqlite/sqliteEventStore.ts';

let fixture: SqliteEventStoreFixture;
let damaged: DamagedStreams;
beforeEach(async () => {
  fixture = await eventStoreFixture();
  damaged = createDamagedStreams(() => undefined);
});
afterEach(() => fixture.dispose());

/** Appends events of an account; resolves with the head of the stream then. */
async function record(
  sessionId: string,
  events: readonly SessionEvent[],
  { account_id = 'acct_1', head = NO_STREAM }: { account_id?: string; head?: StreamHead } = {},
): Promise<StreamHead> {
  const authorship = {
    account_id,
    key_id: 'key_1',
    request_id: 'r',
    causation_id: 'r',
    recorded_at: '2026-11-23T09:00:00.000Z',
  };
  const target = { stream: sessionStream(sessionId), head };
  const named = events.map((event) => ({ id: randomUUID(), ...event }));
  return (await appendEvents(fixture.store(), target, { events: named, authorship })).head;
}

/** A session of two turns; what a fork after the first or the second of them says. */
async function origin(
  account_id = 'acct_1',
): Promise<[Required<ForkedFrom>, Required<ForkedFrom>]> {
  const first = [sessionStarted(), turnStarted(1), turnCompleted(1)];
  const head = await record('session_o', first, { account_id });
  const next = [turnStarted(2), turnCompleted(2)];
  const end = await record('session_o', next, { account_id, head });
  const point = (turn: number, { revision, hash }: StreamHead) => ({
    session_id: 'session_o',
    turn,
    revision,
    hash,
  });
  return [point(1, head), point(2, end)];
}

const forkOf = (forked_from: ForkedFrom): SessionEvent[] => [
  sessionStarted(AGENT_ID, { forked_from }),
];
const load = (sessionId: string) =>
  loadSession({ store: fixture.store(), damaged }, sessionId, async (turns) => turns);
const misfit = async () =>
  (
    await verifyChains({
      store: fixture.store(),
      after: undefined,
      signal: AbortSignal.timeout(10_000),
      onProgress: () => undefined,
    })
  )?.misfit;

test('a fork is idle at the turn that it shares, and holds the turns up to it', async () => {
  const [first] = await origin();
  const head = await record('session_f', forkOf(first));
  const loaded = await load('session_f');
  expect(loaded.state).toEqual({ status: 'idle', agent_id: AGENT_ID, turn: 1 });
  expect(loaded.turns.map(({ turn }) => turn)).toEqual([1]);
  expect([loaded.head, loaded.whole]).toEqual([{ ...head, key: undefined }, true]);
  expect(loaded.origins).toEqual([first]);
  expect(await misfit()).toBeUndefined();
});

test.each<[string, SessionEvent[], string[]]>([
  ['of its own turns only draws on none', [sessionCompacted(3, 3, { dropped: 2 })], []],
  ['of what is shared, too, draws on its origin', [sessionCompacted(2, 3)], ['session_o']],
  [
    'that goes on from another does, wherever turns have fallen out',
    [sessionCompacted(1, 2), sessionCompacted(3, 3, { dropped: 2, summary_revision: 3 })],
    ['session_o'],
  ],
])('a fork whose prompt holds a summary %s', async (_, summaries, drawnOn) => {
  const point = (await origin())[1];
  await record('session_f', [...forkOf(point), turnStarted(3), turnCompleted(3), ...summaries]);
  expect(originsInPrompt(await load('session_f'))).toEqual(drawnOn);
});

describe('a fork that says what is not so is damaged, and the verification of the log names it:', () => {
  const other = 'f'.repeat(64);
  test.each<[string, (points: Awaited<ReturnType<typeof origin>>) => ForkedFrom, RegExp, RegExp]>([
    [
      'another hash',
      ([first]) => ({ ...first, hash: other }),
      /not the one that it was forked after/,
      /has another hash/,
    ],
    [
      'another turn',
      ([first]) => ({ ...first, turn: 2 }),
      /not the one that it was forked after/,
      /does not end turn 2/,
    ],
    [
      'an event that ends no turn',
      ([first]) => ({ ...first, revision: 1 }),
      /not the one that it was forked after/,
      /has another hash/,
    ],
    [
      'no event at all',
      ([first]) => ({ session_id: first.session_id, turn: 1 }),
      /does not say where it was forked/,
      /does not say after which event/,
    ],
    [
      'one that is not there',
      ([first]) => ({ ...first, revision: 9 }),
      /revision 9 is missing/,
      /is missing/,
    ],
  ])('%s', async (_, change, reason, fault) => {
    await record('session_f', forkOf(change(await origin())));
    await expect(load('session_f')).rejects.toMatchObject({
      code: 'stream_damaged',
      message: expect.stringMatching(reason),
    });
    expect(damaged.list().map(({ stream }) => stream)).toHaveLength(1);
    expect(await misfit()).toMatchObject({
      stream: 'session-session_f',
      revision: 0,
      reason: expect.stringMatching(fault),
    });
    // What needs no earlier turn is not kept from it.
    const { state } = await loadSession({ store: fixture.store(), damaged }, 'session_f');
    expect(state.status).toBe('idle');
  });

  test("a session of another account's", async () => {
    const [first] = await origin('acct_2');
    await record('session_f', forkOf(first));
    await expect(load('session_f')).rejects.toMatchObject({
      code: 'stream_damaged',
      message: expect.stringMatching(/of another account/),
    });
  });

  test('itself, or each other', async () => {
    const loop = { session_id: 'session_f', turn: 1, revision: 0, hash: other };
    await record('session_f', forkOf(loop));
    await expect(load('session_f')).rejects.toMatchObject({ code: 'stream_damaged' });
  });
});

test('an origin that was written anew does not fit its fork any more', async () => {
  const [first] = await origin();
  await record('session_f', forkOf(first));
  const log = fixture.store();
  const changed = {
    ...log,
    readStream: (async (...asked) => {
      const events = await log.readStream(...asked);
      return events.map((event) =>
        event.stream === 'session-session_o' && event.revision === first.revision
          ? { ...event, metadata: event.metadata.replace(first.hash, 'e'.repeat(64)) }
          : event,
      );
    }) satisfies typeof log.readStream,
  };
  await expect(
    loadSession({ store: changed, damaged }, 'session_f', async (turns) => turns),
  ).rejects.toMatchObject({ code: 'stream_damaged' });
  expect(damaged.list().map(({ stream }) => stream)).toEqual(['session-session_f']);
});
