import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { authorOf, prepareEvents } from '../../../../shared/commandHandling/prepareEvents.ts';
import {
  forgetState,
  rememberedStreamTarget,
  wholeStreamTarget,
} from '../../../../shared/commandHandling/targetStream.ts';
import { account } from '../../../../shared/accounts/decider.ts';
import type { AccountEvent } from '../../../../shared/accounts/events.ts';
import { replay } from '../../../../shared/replays/decider.ts';
import { NO_STREAM, appendEvents } from '../../../../shared/eventlog/append.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { bytesOf, type StoredEvent } from '../../../../shared/ports/eventStore.ts';
import {
  accountOpened,
  keyIssued,
  limitsSet,
  replayEnded,
  replayStarted,
  replayTurnsCompared,
  turnComparison,
} from '../../../support/builders/events.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../support/stores/sqlite/sqliteEventStore.ts';

let fixture: SqliteEventStoreFixture;
beforeEach(async () => void (fixture = await eventStoreFixture()));
afterEach(() => fixture.dispose());

const author = authorOf({ account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' });

function opened() {
  const store = fixture.store();
  const context = { store, clock: { now: () => 0 }, ids: { uuid: () => randomUUID() } };
  let last = NO_STREAM;
  const append = async (...events: AccountEvent[]): Promise<void> => {
    for (const event of events) {
      const facts = await prepareEvents(context as never, author, last, [event]);
      last = (await appendEvents(store, { stream: 'account-acct_1', head: last }, facts)).head;
    }
  };
  let read = 0;
  const readStream: typeof store.readStream = async (...asked) => {
    const page = await store.readStream(...asked);
    read += page.length;
    return page;
  };
  const damaged = createDamagedStreams(() => undefined);
  const source = { store: { ...store, readStream }, damaged };
  const load = (maxSize = 100) =>
    rememberedStreamTarget('account-acct_1', account, {
      sizeOf: ({ keys }) => 1 + keys.length,
      maxSize,
    }).load(source);
  /** The keys of the account, its revision, and how many events were read for them. */
  const loaded = async (maxSize?: number) => {
    read = 0;
    const { state, head } = await load(maxSize);
    return [state.keys.map(({ key_id }) => key_id), head.revision, read];
  };
  const forget = (): void => forgetState(source.store, 'account-acct_1');
  return { append, loaded, damaged, forget };
}

test('of a remembered stream, only the newest events are read', async () => {
  const { append, loaded, damaged, forget } = opened();
  const keys = Array.from({ length: 70 }, (_, at) => `key_${at}`);
  await append(accountOpened(), ...keys.map((key) => keyIssued(key)));
  expect(await loaded()).toEqual([keys, 70, 71]);
  await append(keyIssued('key_a'));
  expect(await loaded()).toEqual([[...keys, 'key_a'], 71, 50]);
  expect(await loaded()).toEqual([[...keys, 'key_a'], 71, 50]);
  // More events than that were appended since: all of them are read.
  const more = Array.from({ length: 20 }, (_, at) => `key_b${at}`);
  await append(
    ...more.map((key) => keyIssued(key)),
    ...more.map((_, runs) => limitsSet({ runs: runs + 1 })),
    ...more.map((_, runs) => limitsSet({ runs: runs + 1 })),
  );
  const all = [...keys, 'key_a', ...more];
  expect((await loaded()).slice(0, 2)).toEqual([all, 131]);
  damaged.record({ stream: 'account-acct_1', revision: 1, reason: 'was changed' } as never);
  expect((await loaded())[2]).toBe(132);
  expect(damaged.has('account-acct_1')).toBe(false);
  forget();
  expect((await loaded())[2]).toBe(132);
});

test('a state with more parts than may be remembered is not', async () => {
  const { append, loaded } = opened();
  await append(accountOpened(), ...Array.from({ length: 60 }, (_, at) => keyIssued(`key_${at}`)));
  await loaded(40);
  expect((await loaded(40))[2]).toBe(61);
});

test('a stream of large events is read to its end, so many bytes of it at a time', async () => {
  const store = fixture.store();
  const context = { store, clock: { now: () => 0 }, ids: { uuid: () => randomUUID() } };
  const large = (turn: number) => replayTurnsCompared(Array(2_000).fill(turnComparison(turn)));
  const events = [replayStarted(), ...[1, 2, 3, 4, 5, 6].map(large), replayEnded()];
  let last = NO_STREAM;
  for (const event of events) {
    const facts = await prepareEvents(context as never, author, last, [event]);
    last = (await appendEvents(store, { stream: 'replay-1', head: last }, facts)).head;
  }

  const pages: number[][] = [];
  const readStream: typeof store.readStream = async (...asked) => {
    const read = await store.readStream(...asked);
    pages.push(read.map((event: StoredEvent) => bytesOf(event)));
    return read;
  };
  const source = {
    store: { ...store, readStream },
    damaged: createDamagedStreams(() => undefined),
  };
  const { state, head } = await wholeStreamTarget('replay-1', replay).load(source);
  expect([state.status, head.revision]).toEqual(['ended', 7]);
  expect(pages.flat()).toHaveLength(8);
  for (const page of pages)
    expect(page.slice(0, -1).reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(
      LIMITS.store.pageBytes,
    );
});
