import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { closeTurnsOfTheDead } from '../../shared/commands/run/closeTurnsOfTheDead.ts';
import { sessionStream } from '../../shared/eventlog/streams.ts';
import { appendEvents, NO_STREAM } from '../../shared/eventlog/append.ts';
import { createDamagedStreams } from '../../shared/eventlog/damagedStreams.ts';
import { createLogger } from '../../shared/logger.ts';
import type { Instances } from '../../shared/ports/instances.ts';
import type { OpenTurn } from '../../shared/ports/readModels.ts';
import { sessionStarted, turnStartData } from '../support/sessionEvents.ts';
import { sqliteEventStoreFixture } from '../support/sqliteEventStore.ts';

const NOW = Date.UTC(2026, 10, 20, 9);
const LATER = new Date(NOW + 60_000).toISOString();

let fixture: Awaited<ReturnType<typeof sqliteEventStoreFixture>>;
let open: OpenTurn[];
let forgotten: string[];

beforeEach(async () => {
  fixture = await sqliteEventStoreFixture();
  open = [];
  forgotten = [];
});
afterEach(() => fixture.dispose());

async function openTurn(session_id: string, owner: string, deadline = LATER): Promise<void> {
  const started = { type: 'session.turn_started.v1', data: { turn: 1, ...turnStartData, owner, deadline } };
  const authorship = { account_id: 'acct_1', key_id: 'key_1', request_id: 'r', causation_id: 'r', recorded_at: new Date(NOW).toISOString() };
  await appendEvents(fixture.store(), { stream: sessionStream(session_id), head: NO_STREAM }, [sessionStarted, started].map((event) => ({ id: randomUUID(), ...event })), authorship);
  open.push({ session_id, account_id: 'acct_1', turn: 1, owner, deadline });
}

const instances: Instances = {
  register: () => Promise.reject(new Error('not asked for')),
  listDeadInstances: async () => [{ instance_id: 'dead', last_beat_at: 'long ago' }],
  forget: async ({ instance_id }) => void forgotten.push(instance_id),
  close: () => Promise.resolve(),
};

const sweep = (signal = new AbortController().signal): Promise<void> =>
  closeTurnsOfTheDead(
    {
      store: fixture.store(),
      damaged: createDamagedStreams(() => undefined),
      ids: { uuid: randomUUID, typeId: (prefix) => prefix },
      clock: { now: () => NOW },
      logger: createLogger('silent'),
      instances,
      readModels: { listOpenTurns: async () => open },
      watch: { look: () => Promise.resolve(), isDead: (instance) => instance === 'dead' },
    },
    signal,
  );

async function endsOf(session_id: string): Promise<unknown[]> {
  const events = await fixture.store().readStream(sessionStream(session_id), { direction: 'forwards', from: 2, limit: 10 });
  return events.map(({ type, data }) => [type, (JSON.parse(data) as { reason: string }).reason]);
}

test('a turn of a dead instance is closed once, whoever comes first and however often it is still shown as open', async () => {
  await openTurn('session_1', 'dead');
  await Promise.all([sweep(), sweep(), sweep()]);
  await sweep();
  expect(await endsOf('session_1')).toEqual([['session.turn_interrupted.v1', 'crash']]);
});

test('a sweep that is told to stop leaves the rest to the next one', async () => {
  await openTurn('session_1', 'dead');
  await sweep(AbortSignal.abort());
  expect(await endsOf('session_1')).toEqual([]);
});

test('a turn of an instance that lives, or that nobody knows, is left alone until it is past its deadline', async () => {
  await openTurn('session_1', 'alive');
  await openTurn('session_2', 'unknown', new Date(NOW - 14_000).toISOString());
  await openTurn('session_3', 'unknown', new Date(NOW - 16_000).toISOString());
  await sweep();
  expect([await endsOf('session_1'), await endsOf('session_2'), await endsOf('session_3')]).toEqual([[], [], [['session.turn_interrupted.v1', 'deadline']]]);
});

test('a session that can not be read does not keep the others back', async () => {
  await fixture.store().append(sessionStream('session_1'), 'no_stream', [{ id: randomUUID(), type: 'session.started.v1', data: 'not JSON', metadata: 'not JSON' }]);
  open.push({ session_id: 'session_1', account_id: 'acct_1', turn: 1, owner: 'dead', deadline: LATER });
  await openTurn('session_2', 'dead');
  await sweep();
  expect(await endsOf('session_2')).toHaveLength(1);
});

test('instances that have been dead for long are taken out of the list', async () => {
  await sweep();
  expect(forgotten).toEqual(['dead']);
});
