/**
 * The EventStoreDB adapter's bars: `node test/bench/eventStoreDb.ts [--baseline <another checkout>]
 * [--events 1000000]`. For each version that the stand-in speaks: the batches that a subscriber far
 * behind gets, those of one that falls behind while it is live, the time from an append to its
 * batch, and what `head()` costs behind others' events. With a baseline its adapter and ours take
 * turns in the same run, and the ratio is printed. EVENTSTOREDB_URL measures a real server instead.
 */
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { openEventStoreDb } from '../../infra/eventstoredb/eventStore.ts';
import type { EncodedEvent, EventStore } from '../../shared/ports/eventStore.ts';
import { startEventStoreDbProcess } from '../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { openLog } from '../support/servers/eventstoredb-node/log.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { median } from './load.ts';

const VERSIONS = ['23.10.6', '24.6.0', '24.10.0', '25.0.1', '26.1.0'];
const BATCH_SIZE = 500;
const ROUNDS = 5;
const APPENDS = 200;
const BURST = 5_000;
const SLOW_BATCH_MS = 20;
const FOREIGN = [0, 200_000, 1_100_000];

type Open = typeof openEventStoreDb;

const { values } = parseArgs({
  options: { baseline: { type: 'string' }, events: { type: 'string', default: '1000000' } },
});
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const adapterIn = async (checkout: string): Promise<Open> =>
  (
    (await import(
      pathToFileURL(join(resolve(checkout), 'infra/eventstoredb/eventStore.ts')).href
    )) as { openEventStoreDb: Open }
  ).openEventStoreDb;

const newStream = (): string => `session-session_${crypto.randomUUID()}`;
const newEvents = (count: number): EncodedEvent[] =>
  Array.from({ length: count }, () => ({
    id: crypto.randomUUID(),
    type: 'happened',
    data: JSON.stringify({ text: 'x'.repeat(300) }),
    metadata: '{}',
  }));

/** Past the wire: streams of 100 events each. */
function fill(folder: string, stream: string, count: number): void {
  const log = openLog(folder);
  const data = Buffer.from(JSON.stringify({ text: 'x'.repeat(300) }));
  for (let from = 0; from < count; from += 100) {
    const events = Array.from({ length: Math.min(100, count - from) }, () => ({
      id: crypto.randomUUID(),
      type: 'happened',
      contentType: 'application/json',
      data,
      metadata: Buffer.from('{}'),
    }));
    log.append(`${stream}-${from}`, 'no_stream', events);
  }
  log.close();
}

interface Consumed {
  /** Median and mean number of events in the batches, the last one left out. */
  median: number;
  mean: number;
  perSecond: number;
}

async function consume(
  store: EventStore,
  {
    after,
    count,
    batchMs,
  }: { after?: Awaited<ReturnType<EventStore['head']>>; count: number; batchMs: number },
  during?: () => Promise<unknown>,
): Promise<Consumed> {
  const controller = new AbortController();
  const sizes: number[] = [];
  let seen = 0;
  let began = performance.now();
  let working: Promise<unknown> | undefined;
  for await (const { events, caughtUp } of store.subscribe({
    ...(after === undefined ? {} : { after }),
    batchSize: BATCH_SIZE,
    signal: controller.signal,
  })) {
    if (during && !working && caughtUp) {
      began = performance.now();
      working = during();
    }
    if (events.length > 0) sizes.push(events.length);
    seen += events.length;
    if (seen >= count) controller.abort();
    if (batchMs > 0 && events.length > 0) await sleep(batchMs);
  }
  await working;
  const full = sizes.length > 1 ? sizes.slice(0, -1) : sizes;
  return {
    median: median(full),
    mean: full.reduce((sum, size) => sum + size, 0) / full.length,
    perSecond: (1000 * seen) / (performance.now() - began),
  };
}

/** Writes in bursts while a consumer needs 20 ms a batch. */
const burst = (store: EventStore) => async (): Promise<void> => {
  const streams = Array.from({ length: BURST / 50 }, newStream);
  await Promise.all(streams.map((stream) => store.append(stream, 'no_stream', newEvents(50))));
};

/** The time from an append's answer to its batch, in milliseconds, median of many. */
async function latency(store: EventStore): Promise<number> {
  const controller = new AbortController();
  const batches = store
    .subscribe({ after: await store.head(), batchSize: BATCH_SIZE, signal: controller.signal })
    [Symbol.asyncIterator]();
  await batches.next();
  const times: number[] = [];
  const stream = newStream();
  for (let revision = 0; revision < APPENDS; revision += 1) {
    const began = performance.now();
    await store.append(stream, revision === 0 ? 'no_stream' : revision - 1, newEvents(1));
    await batches.next();
    times.push(performance.now() - began);
  }
  controller.abort();
  await batches.next();
  return median(times);
}

async function withStore<Result>(
  open: Open,
  connectionString: string,
  use: (store: EventStore) => Promise<Result>,
): Promise<Result> {
  const store = await open({ connectionString });
  try {
    await store.head();
    return await use(store);
  } finally {
    await store.close();
  }
}

const shown = ({ median: size, mean, perSecond }: Consumed): string =>
  `median ${size} of ${BATCH_SIZE}, mean ${mean.toFixed(0)}, ${Math.round(perSecond)} events/s`;

async function measure(connectionString: string, baseline: Open | undefined): Promise<void> {
  const count = Number(values.events);
  if (count > 0)
    say(
      `  ${count} events behind: ${shown(await withStore(openEventStoreDb, connectionString, (store) => consume(store, { count, batchMs: 0 })))}`,
    );
  const behind = async (open: Open): Promise<Consumed> =>
    withStore(open, connectionString, async (store) =>
      consume(
        store,
        { after: await store.head(), count: BURST, batchMs: SLOW_BATCH_MS },
        burst(store),
      ),
    );
  say(
    `  ${BURST} events while live, ${SLOW_BATCH_MS} ms a batch: ${shown(await behind(openEventStoreDb))}${baseline ? `; baseline ${shown(await behind(baseline))}` : ''}`,
  );
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    ours.push(await withStore(openEventStoreDb, connectionString, latency));
    if (baseline) theirs.push(await withStore(baseline, connectionString, latency));
  }
  const against = baseline
    ? `; baseline ${median(theirs).toFixed(2)} ms, ratio ${(median(ours) / median(theirs)).toFixed(2)}`
    : '';
  say(`  from an append to its batch, p50: ${median(ours).toFixed(2)} ms${against}`);
}

async function timeOfHead(store: EventStore): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS * 4; round += 1) {
    const began = performance.now();
    await store.head();
    times.push(performance.now() - began);
  }
  return median(times);
}

async function measureHead(baseline: Open | undefined): Promise<void> {
  for (const foreign of FOREIGN) {
    const folder = await temporaryFolder();
    fill(folder, 'session', 100);
    fill(folder, 'other', foreign);
    const server = await startEventStoreDbProcess({ folder });
    const ours = await withStore(openEventStoreDb, server.connectionString, timeOfHead);
    const theirs = baseline && (await withStore(baseline, server.connectionString, timeOfHead));
    say(
      `head() behind ${foreign} events of others, p50: ${ours.toFixed(2)} ms${theirs === undefined ? '' : `; baseline ${theirs.toFixed(2)} ms`}`,
    );
    await server.kill('SIGTERM');
    await rm(folder, { recursive: true });
  }
}

const baseline = values.baseline === undefined ? undefined : await adapterIn(values.baseline);
const url = process.env['EVENTSTOREDB_URL'];
if (url) await measure(url, baseline);
else {
  const folder = await temporaryFolder();
  fill(folder, 'session', Number(values.events));
  for (const version of VERSIONS) {
    say(`EventStoreDB ${version} (stand-in)`);
    const server = await startEventStoreDbProcess({ folder, version });
    await measure(server.connectionString, baseline);
    await server.kill('SIGTERM');
  }
  await rm(folder, { recursive: true });
  await measureHead(baseline);
}
