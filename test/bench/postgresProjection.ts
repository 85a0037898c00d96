/**
 * How fast a log goes into PostgreSQL, and where the time goes: `node
 * test/bench/postgresProjection.ts [events]`. The server is one of its own with fsync on, or that
 * of DATABASE_URL.
 */
import { performance } from 'node:perf_hooks';
import { openPostgresReadModels } from '../../infra/postgres/readModels/readModels.ts';
import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import { planBatch } from '../../shared/projections/plan.ts';
import { startPostgresProcess } from '../support/servers/postgres/postgresProcess.ts';
import { openActive } from '../support/servers/postgres/postgresProjector.ts';
import { createTestDatabase } from '../support/servers/postgres/postgresDatabase.ts';
import {
  agentCreated,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnStarted,
} from '../support/builders/events.ts';
import { recordHistory, reached } from '../support/builders/history.ts';

const BATCH = 1000;
const WAITS = 500;
const total = Number(process.argv[2] ?? 100_000);
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const percentile = (values: number[], part: number): string =>
  (values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? 0).toFixed(2);

/**
 * Agents, each with sessions of five turns, half of them with a tool call, texts of a few hundred
 * characters.
 */
function* history(): Generator<StoredEvent> {
  const { record } = recordHistory();
  const text = 'Some sentence of a conversation, as long as sentences are. '.repeat(6);
  for (let agent = 0; ; agent += 1) {
    yield record({ stream: `agent-agent_${agent}` }, agentCreated({ instruction: text }));
    for (let session = 0; session < 10; session += 1) {
      const stream = `session-session_${agent}_${session}`;
      yield record({ stream }, sessionStarted(`agent_${agent}`));
      for (let turn = 1; turn <= 5; turn += 1) {
        yield record({ stream }, turnStarted(turn, { input: text }));
        if (turn % 2 === 0) yield record({ stream }, toolCalled(turn));
        yield record({ stream }, turnCompleted(turn, { output: text }));
      }
    }
  }
}

const own = process.env['DATABASE_URL'] ? undefined : await startPostgresProcess({ fsync: true });
const serverUrl = process.env['DATABASE_URL'] ?? own?.url;
if (!serverUrl) throw new Error('no PostgreSQL: set DATABASE_URL');
const database = await createTestDatabase(serverUrl);
const events = history();
const next = (count: number): StoredEvent[] =>
  Array.from({ length: count }, () => events.next().value as StoredEvent);
const batches = Array.from({ length: Math.ceil(total / BATCH) }, () => next(BATCH));
const planned = performance.now();
for (const batch of batches) planBatch(batch);
const planMs = performance.now() - planned;
const store = await openActive(database.url);
const cpu = process.cpuUsage();
const begun = performance.now();
for (const batch of batches) await store.apply(batch, reached(batch.at(-1)!.position));
const elapsed = performance.now() - begun;
const { user, system } = process.cpuUsage(cpu);
print(
  `batches of ${BATCH}: ${Math.round((1000 * total) / elapsed)} events/s; of the time, this process computes ${Math.round((user + system) / 10 / elapsed)} % (decoding and planning alone ${Math.round((100 * planMs) / elapsed)} %)`,
);

await store.complete();
const readModels = openPostgresReadModels({ databaseUrl: database.url });
await readModels.untilShown(batches.at(-1)!.at(-1)!.position, 10_000);
const applied: number[] = [];
const waited: number[] = [];
for (const event of next(WAITS)) {
  const from = performance.now();
  const wait = readModels
    .untilShown(event.position, 10_000)
    .then(() => waited.push(performance.now() - from));
  await store.apply([event], reached(event.position));
  applied.push(performance.now() - from);
  await wait;
}
print(
  `single events: applied in ${percentile(applied, 0.5)} ms (p50), ${percentile(applied, 0.99)} ms (p99); seen by a waiting replica after ${percentile(waited, 0.5)} ms (p50), ${percentile(waited, 0.99)} ms (p99)`,
);
const reads: number[] = [];
for (let index = 0; index < WAITS; index += 1) {
  const from = performance.now();
  await readModels.findAgent('agent_1');
  reads.push(performance.now() - from);
}
print(`findAgent: ${percentile(reads, 0.5)} ms (p50), ${percentile(reads, 0.99)} ms (p99)`);
await readModels.close();
await store.close();
await database.drop();
await own?.close();
