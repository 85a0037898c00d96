import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { rm } from 'node:fs/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openEventStoreDb } from '../../../infra/eventstoredb/eventStore.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type {
  EventBatch,
  EventStore,
  Position,
  StoredEvent,
} from '../../../shared/ports/eventStore.ts';
import {
  expectStrictlyAscending,
  newEvents,
  newStream,
} from '../../contracts/eventStore/support.ts';
import { openLog } from '../../support/servers/eventstoredb-node/log.ts';
import {
  startEventStoreDbProcess,
  type EventStoreDbProcess,
} from '../../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../../support/jest/size.ts';

const STREAMS = size({ small: 250, full: 1000 });
const EVENTS_PER_STREAM = 100;
const EVENTS = STREAMS * EVENTS_PER_STREAM;
const SAMPLE_EVERY = EVENTS / 10;
const DROPS = size({ small: 15, full: 50 });
/** The text length of each event. All texts together exceed 50 MB. */
const TEXT_LENGTH = size({ small: 2_000, full: 400 });

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Memory in use after garbage collection, in megabytes. */
function memoryInUse(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1024 ** 2;
}

/** Writes directly to the log, with foreign records in between. */
function fill(folder: string): void {
  const log = openLog(folder);
  const proposed = (stream: string, text: string) => ({
    id: crypto.randomUUID(),
    type: 'session.turn_started.v1',
    contentType: 'application/json',
    data: Buffer.from(JSON.stringify({ stream, text })),
    metadata: Buffer.from('{"account_id":"acct_1"}'),
  });
  for (let count = 0; count < STREAMS; count += 1) {
    const stream = newStream();
    log.append(
      stream,
      'no_stream',
      Array.from({ length: EVENTS_PER_STREAM }, (_, index) =>
        proposed(stream, `${index}`.padEnd(TEXT_LENGTH, '.')),
      ),
    );
    log.append('other', 'any', [proposed('other', 'foreign')]);
  }
  log.close();
}

async function nextEvents(batches: AsyncIterator<EventBatch>): Promise<StoredEvent[]> {
  const { value } = (await batches.next()) as IteratorYieldResult<EventBatch>;
  return value.events;
}

describe(`a subscription over a log of ${EVENTS} events`, () => {
  let folder: string;
  let server: EventStoreDbProcess;
  let store: EventStore;
  let breaks = 0;
  const logger = { warn: () => (breaks += 1) } as unknown as Logger;
  beforeAll(async () => {
    folder = await temporaryFolder();
    fill(folder);
    server = await startEventStoreDbProcess({ folder });
    store = await openEventStoreDb({ connectionString: server.connectionString, logger });
  }, 120_000);
  afterAll(async () => {
    await store.close();
    await server.kill('SIGTERM');
    await rm(folder, { recursive: true });
  });

  test(`delivers each event once and in order although the connection breaks ${DROPS} times, with constant memory`, async () => {
    const drops = Array.from({ length: DROPS }, () => Math.floor(Math.random() * EVENTS)).toSorted(
      (a, b) => a - b,
    );
    const revisions = new Map<string, number>();
    const memory: number[] = [];
    let delivered = 0;
    let outOfOrder = 0;
    let last = '';
    const controller = new AbortController();
    for await (const { events, caughtUp } of store.subscribe({
      batchSize: 500,
      signal: controller.signal,
    })) {
      for (const { stream, revision, position } of events) {
        if (position <= last || revision !== (revisions.get(stream) ?? -1) + 1) outOfOrder += 1;
        revisions.set(stream, revision);
        last = position;
      }
      const before = delivered;
      delivered += events.length;
      while (drops.length > 0 && (drops[0] ?? 0) < delivered) {
        drops.shift();
        server.drop();
      }
      if (Math.floor(before / SAMPLE_EVERY) < Math.floor(delivered / SAMPLE_EVERY))
        memory.push(memoryInUse());
      if (caughtUp && delivered === EVENTS) controller.abort();
    }
    expect([delivered, revisions.size, outOfOrder, drops.length]).toEqual([EVENTS, STREAMS, 0, 0]);
    // Two drops may hit the same connection, but rarely.
    expect(breaks).toBeGreaterThan(DROPS / 2);
    // The log exceeds 50 MB. Events in transit vary between samples, but retained memory must not
    // grow.
    const [early, late] = [memory.slice(0, 4), memory.slice(-4)].map((samples) =>
      Math.min(...samples),
    ) as [number, number];
    expect(late - early).toBeLessThan(25);
    const median = memory.toSorted((a, b) => a - b)[Math.floor(memory.length / 2)]!;
    expect(median - early).toBeLessThan(40);
  }, 300_000);

  test('receives only requested events from the server', async () => {
    const before = memoryInUse();
    const controller = new AbortController();
    const batches = store
      .subscribe({ batchSize: 10, signal: controller.signal })
      [Symbol.asyncIterator]();
    await batches.next();
    // These calls give the server time to send more on the same connection.
    for (let count = 0; count < 100; count += 1) await store.head();
    // The whole log would exceed 50 MB.
    expect(memoryInUse() - before).toBeLessThan(25);
    controller.abort();
    await batches.return?.();
  });

  test('resumes live after the server was killed and restarted', async () => {
    const controller = new AbortController();
    const batches = store
      .subscribe({ after: await store.head(), batchSize: 10, signal: controller.signal })
      [Symbol.asyncIterator]();
    await batches.next();
    const { port } = server;
    await server.kill();
    const stream = newStream();
    const appending = store.append(stream, 'no_stream', newEvents(3));
    server = await startEventStoreDbProcess({ folder, port });
    const { position } = await appending;
    const positions: Position[] = [];
    while (positions.at(-1) !== position)
      positions.push(...(await nextEvents(batches)).map((event) => event.position));
    expectStrictlyAscending(positions);
    expect(positions).toHaveLength(3);
    controller.abort();
  }, 120_000);
});
