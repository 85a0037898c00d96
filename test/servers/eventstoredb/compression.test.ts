import { afterEach, expect, test } from '@jest/globals';
import { rm } from 'node:fs/promises';
import { openEventStoreDb } from '../../../infra/eventstoredb/eventStore.ts';
import {
  follow,
  holds,
  idsOf,
  newEvents,
  newStream,
  readAll,
} from '../../contracts/eventStore/support.ts';
import { startEventStoreDbNode } from '../../support/servers/eventstoredb-node/index.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const stack: Array<() => unknown> = [];
afterEach(async () => {
  for (const clean of stack.splice(0).toReversed()) await clean();
});

/** How many responses a server of that version compresses while events are written, read and followed. */
async function compressedBy(version: string, option: string): Promise<number> {
  const folder = await temporaryFolder();
  stack.push(() => rm(folder, { recursive: true }));
  const node = await startEventStoreDbNode({ folder, version });
  stack.push(node.close);
  const store = await openEventStoreDb({ connectionString: `${node.connectionString}${option}` });
  stack.push(store.close);
  const [stream, events] = [newStream(), newEvents(3)];
  await store.append(stream, 'no_stream', events);
  expect(idsOf(await readAll(store, stream))).toEqual(idsOf(events));
  const following = follow(store, undefined);
  const batches = await following.until(holds([stream], 3));
  following.stop();
  expect(idsOf(batches.flatMap((batch) => batch.events))).toEqual(idsOf(events));
  return node.compressedResponses();
}

test('a server from 25.1 on, which compresses for clients that accept it, compresses nothing', async () => {
  expect(await compressedBy('26.1.0', '')).toBe(0);
});

test('compression=gzip lets it compress, and events are the same', async () => {
  expect(await compressedBy('26.1.0', '&compression=gzip')).toBeGreaterThan(0);
  expect(await compressedBy('25.0.1', '&compression=gzip')).toBe(0);
});
