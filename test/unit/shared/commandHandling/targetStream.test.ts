import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { authorOf, prepareEvents } from '../../../../shared/commandHandling/prepareEvents.ts';
import { wholeStreamTarget } from '../../../../shared/commandHandling/targetStream.ts';
import { replay } from '../../../../shared/replays/decider.ts';
import { NO_STREAM, appendEvents } from '../../../../shared/eventlog/append.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { bytesOf, type StoredEvent } from '../../../../shared/ports/eventStore.ts';
import {
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

test('a stream of large events is read to its end, so many bytes of it at a time', async () => {
  const store = fixture.store();
  const context = { store, clock: { now: () => 0 }, ids: { uuid: () => randomUUID() } };
  const author = authorOf({ account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' });
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
