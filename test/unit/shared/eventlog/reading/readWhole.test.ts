import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import {
  toDamageError,
  reportDamage,
} from '../../../../../shared/eventlog/reading/reportDamage.ts';
import { readPage } from '../../../../../shared/eventlog/reading/readWhole.ts';
import type { LeafComparison } from '../../../../../shared/transparency/leaves/leafComparison.ts';
import { sessionDescribed, sessionStarted } from '../../../../support/builders/events.ts';
import { turnsDuring } from '../../../../support/fakes/loopTurns.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';
import { handleContext, writeStream } from '../../../../support/stores/handleContext.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../../support/stores/sqlite/sqliteEventStore.ts';

const STREAM = 'session-1';

function brokenSource() {
  const damaged = createDamagedStreams(() => undefined);
  const readStream = () => Promise.reject(new TurnlogError('stream_damaged', 'It was deleted.'));
  return {
    store: { readStream, keys: memoryKeys().keys },
    damaged,
    record: jest.spyOn(damaged, 'record'),
  };
}

test('damage that only the store tells of is noted once, and answered with the place the client named', async () => {
  const source = brokenSource();
  const error = await readPage(source, STREAM, { direction: 'forwards', limit: 1 }).catch(
    (thrown: unknown) => thrown,
  );
  const answered = await toDamageError(source, STREAM, error as TurnlogError, '/session_id');
  expect(answered.details).toMatchObject({ stream: { path: '/session_id' } });
  expect(source.record).toHaveBeenCalledTimes(1);
});

test('damage that was found here is noted once', async () => {
  const source = brokenSource();
  const error = await reportDamage(source, STREAM, { reason: 'x', revision: 0 });
  await toDamageError(source, STREAM, error, '/session_id');
  expect(source.record).toHaveBeenCalledTimes(1);
});

test('the wait for a lost end ends with the limits of the caller', async () => {
  const missing = { reason: 'revision 0 is missing', revision: 0 };
  const leaves = {
    newestKnown: () => 0,
    findMissing: async () => missing,
  } as unknown as LeafComparison;
  const { damaged, store } = brokenSource();
  const source = {
    damaged,
    store: { ...store, readStream: async () => [], leaves },
  };
  const newest = { direction: 'backwards', limit: 1 } as const;
  const reason = new Error('stopped');
  const stopped = { ...source, waitLimits: { signal: AbortSignal.abort(reason) } };
  await expect(readPage(stopped, STREAM, newest)).rejects.toBe(reason);
  const late = { ...source, waitLimits: { until: performance.now() } };
  await expect(readPage(late, STREAM, newest)).rejects.toMatchObject({ code: 'store_unavailable' });
});

test('an event that is appended while the newest ones are read is not missing', async () => {
  let known = -1;
  const leaves = {
    newestKnown: () => known,
    findMissing: async (_stream: string, end: { known: number; newest: number }) =>
      end.known > end.newest ? { reason: 'revision 0 is missing', revision: 0 } : undefined,
  } as unknown as LeafComparison;
  const { damaged, store } = brokenSource();
  async function readStream(): Promise<[]> {
    known = 0;
    return [];
  }
  const source = { damaged, store: { ...store, readStream, leaves } };
  expect(await readPage(source, STREAM, { direction: 'backwards', limit: 1 })).toEqual([]);
});

describe('a long stream', () => {
  let fixture: SqliteEventStoreFixture;
  beforeEach(async () => {
    fixture = await eventStoreFixture();
  });
  afterEach(() => fixture.dispose());

  test('is decoded in some turns of the event loop, however small its events are', async () => {
    const source = handleContext(fixture.store(), 0);
    const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
    const described = Array.from({ length: 499 }, () => sessionDescribed());
    await writeStream(source, actor, STREAM, [sessionStarted(), ...described]);
    const turnsToRead = (limit: number) =>
      turnsDuring(async () => {
        const page = await readPage(source, STREAM, { direction: 'forwards', limit });
        expect(page).toHaveLength(limit);
      });
    // Each slice waits until other work has had some turns.
    expect(await turnsToRead(500)).toBeGreaterThanOrEqual(12);
    expect(await turnsToRead(32)).toBe(0);
  });
});
