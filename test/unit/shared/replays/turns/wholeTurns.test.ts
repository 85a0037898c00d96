import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { readWholeTurns } from '../../../../../shared/replays/turns/wholeTurns.ts';
import type { ReadOptions } from '../../../../../shared/ports/eventStore.ts';
import {
  sessionErased,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

/** A source with the events of session_1, and how often it was read. */
function sourceOf(events: readonly Parameters<ReturnType<typeof recordHistory>['record']>[1][]) {
  const { record } = recordHistory();
  const stored = events.map((event) => record({ stream: 'session-session_1' }, event));
  let reads = 0;
  const source = {
    store: {
      keys: memoryKeys().keys,
      async readStream(_: string, { from = 0, limit }: ReadOptions) {
        reads += 1;
        return stored.slice(from, from + limit);
      },
    },
    damaged: createDamagedStreams(() => undefined),
  } as unknown as Parameters<typeof readWholeTurns>[0];
  return { source, reads: () => reads };
}

test('several sessions of an account are read a page at a time, turns of the event loop apart', async () => {
  const turns = Array.from({ length: 100 }, (_, index) => [
    turnStarted(index + 1),
    turnCompleted(index + 1),
  ]);
  const { source, reads } = sourceOf([sessionStarted(), ...turns.flat()]);
  const counts: number[] = [];
  const read = async (): Promise<void> => {
    const stretch = { from: 1, upTo: turns.length * 2 };
    let count = 0;
    for await (const _ of readWholeTurns(source, 'session_1', stretch)) count += 1;
    counts.push(count);
  };
  const all = Promise.all([read(), read(), read(), read()]);
  // The first page of each.
  await setImmediate();
  let most = 0;
  while (counts.length < 4) {
    const before = reads();
    await setImmediate();
    most = Math.max(most, reads() - before);
  }
  await all;
  expect(counts).toEqual([100, 100, 100, 100]);
  expect(most).toBeLessThan(3);
});

test('a session that was erased before the first turn to read has no turns, and says why', async () => {
  const { source } = sourceOf([sessionStarted(), sessionErased()]);
  const turns = readWholeTurns(source, 'session_1', { from: 1, upTo: Infinity });
  await expect(turns.next()).rejects.toMatchObject({ code: 'session_erased' });
});
