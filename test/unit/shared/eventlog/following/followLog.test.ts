import { expect, test } from '@jest/globals';
import { followLog, readLogUntil } from '../../../../../shared/eventlog/following/followLog.ts';
import type { StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import { logOf, memoryLog } from '../../../../support/fakes/memoryLog.ts';

/** Three batches of memoryLog. */
const log = logOf(300);

async function read(
  isComplete: (events: readonly StoredEvent[]) => boolean,
): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  await readLogUntil(
    () => isComplete(events),
    (event) => void events.push(event),
    {
      log: memoryLog(log),
      after: undefined,
      batchSize: 100,
      signal: new AbortController().signal,
    },
  );
  return events;
}

test.each([0, 1, 99, 100, 101, 250])(
  'a log is read up to the event that completes it, in the middle of a batch too: %d',
  async (count) => {
    expect(await read(({ length }) => length === count)).toEqual(log.slice(0, count));
  },
);

test('a log is read up to its end where nothing completes it', async () => {
  expect(await read(() => false)).toEqual(log);
});

test('a follower that fails while no event arrives ends its subscription', async () => {
  let subscription: AbortSignal | undefined;
  const following = followLog({
    log: {
      async *subscribe({ signal }) {
        subscription = signal;
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        yield* [];
      },
    },
    after: undefined,
    batchSize: 1,
    signal: new AbortController().signal,
    handleBatch: async () => undefined,
    idle: { afterMs: 1, onIdle: () => Promise.reject(new Error('away')) },
  });
  await expect(following).rejects.toThrow('away');
  expect(subscription?.aborted).toBe(true);
});
