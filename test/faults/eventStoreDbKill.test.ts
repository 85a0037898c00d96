import { expect, test } from '@jest/globals';
import { EventEmitter, once } from 'node:events';
import { rm } from 'node:fs/promises';
import { openEventStoreDb } from '../../infra/eventstoredb/eventStore.ts';
import type { EncodedEvent } from '../../shared/ports/eventStore.ts';
import { idsOf, newEvents, newStream, readAll } from '../contracts/eventStore/support.ts';
import { startEventStoreDbProcess } from '../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../support/jest/size.ts';

const KILLS = size({ small: 8, full: 30 });
const WRITERS = 16;

test('loses and repeats nothing when the server is killed again and again under load', async () => {
  const folder = await temporaryFolder();
  let server = await startEventStoreDbProcess({ folder });
  const { port, connectionString } = server;
  const store = await openEventStoreDb({ connectionString, deadlineMs: 60_000 });
  const load = new EventEmitter();
  const state = { stopping: false, acknowledged: 0 };

  async function write(): Promise<{ stream: string; events: EncodedEvent[] }> {
    const stream = newStream();
    const events: EncodedEvent[] = [];
    while (!state.stopping) {
      const [event] = newEvents(1);
      if (!event) break;
      await store.append(stream, events.length === 0 ? 'no_stream' : events.length - 1, [event]);
      events.push(event);
      state.acknowledged += 1;
      load.emit('acknowledged');
    }
    return { stream, events };
  }

  async function progress(count: number): Promise<void> {
    for (const goal = state.acknowledged + count; state.acknowledged < goal;)
      await once(load, 'acknowledged');
  }

  const writing = Array.from({ length: WRITERS }, write);
  for (let kill = 0; kill < KILLS; kill += 1) {
    await progress(Math.ceil(Math.random() * 300));
    await server.kill();
    server = await startEventStoreDbProcess({ folder, port });
  }
  state.stopping = true;
  for (const { stream, events } of await Promise.all(writing))
    expect(idsOf(await readAll(store, stream))).toEqual(idsOf(events));

  await store.close();
  await server.kill('SIGTERM');
  await rm(folder, { recursive: true });
}, 180_000);
