/**
 * A service on EventStoreDB: `node test/bench/eventStoreDbService.ts [--version 26.1.0] [--events
 * 200000] [--runs 2000]`. Runs per second and CPU time per run beside a service on the embedded log, in
 * rounds that take turns; then how fast empty read models in SQLite and PostgreSQL are filled from that
 * log. The server is the stand-in as that version, or the one of EVENTSTOREDB_URL, whose log must be
 * empty.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openEventStoreDb } from '../../infra/eventstoredb/eventStore.ts';
import { openSqliteProjectionStore } from '../../infra/sqlite/readModels/projectionStore.ts';
import { runProjection } from '../../services/followers/projector/run.ts';
import { withTextsForRows } from '../../shared/eventlog/encryption/protectedStore.ts';
import type { ProjectionStore } from '../../shared/ports/readModels.ts';
import { memoryKeys } from '../support/fakes/memoryKeys.ts';
import { startEventStoreDbProcess } from '../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { createTestDatabase } from '../support/servers/postgres/postgresDatabase.ts';
import { startPostgresProcess } from '../support/servers/postgres/postgresProcess.ts';
import { openActive } from '../support/servers/postgres/postgresProjector.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { allOf } from './cpuPerCall.ts';
import { addEvents } from './largeLog.ts';
import { applyLoad, median } from './load.ts';
import { ROOT, startProcess } from './process.ts';
import { createAgent, prepareFolder, runAgent, send, startTurnlog } from './turnlog.ts';

const ROUNDS = 5;
/** After a load the projector works on for this long. */
const SETTLE_MS = 1_000;
const ignore = (): void => undefined;
const QUIET = { info: ignore, warn: ignore, error: ignore };

const { values } = parseArgs({
  options: {
    version: { type: 'string', default: '26.1.0' },
    events: { type: 'string', default: '200000' },
    runs: { type: 'string', default: '2000' },
  },
});
const say = (text: string): void => void process.stdout.write(`${text}\n`);

type Service = Awaited<ReturnType<typeof startService>>;

async function startService(modelUrl: string, options: Record<string, string>) {
  const folder = await prepareFolder(modelUrl);
  const service = await startTurnlog(folder, ROOT, options);
  const { agent_id } = await send(service.url, createAgent('bench'));
  return { ...service, folder, agentId: agent_id as string };
}

/** Runs per second, and the CPU time of one in microseconds: of the main thread, and of all. */
async function measureRuns({ url, agentId, cpuTime }: Service, connections: number) {
  const before = cpuTime();
  const call = () => runAgent(agentId);
  const { perSecond } = await applyLoad({ url, connections, calls: Number(values.runs), call });
  await sleep(SETTLE_MS);
  const after = cpuTime();
  const perRun = (microseconds: number): number => microseconds / Number(values.runs);
  const [main, all] = [after.main - before.main, allOf(after) - allOf(before)];
  return { perSecond, main: perRun(main), all: perRun(all) };
}

async function compareRuns(cluster: Service, embedded: Service, connections: number) {
  const ours: Awaited<ReturnType<typeof measureRuns>>[] = [];
  const theirs: typeof ours = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    ours.push(await measureRuns(cluster, connections));
    theirs.push(await measureRuns(embedded, connections));
  }
  const shown = (rounds: typeof ours): string => {
    const of = (name: keyof (typeof rounds)[number]): string =>
      median(rounds.map((round) => round[name])).toFixed(0);
    return `${of('perSecond')} runs/s, ${of('all')} µs of CPU time each (main thread ${of('main')})`;
  };
  const ratio = median(ours.map(({ perSecond }, round) => perSecond / theirs[round]!.perSecond));
  say(
    `${connections} connections: ${shown(ours)}; embedded ${shown(theirs)}; ratio ${ratio.toFixed(2)}`,
  );
}

/** Fills a store from the log, as the projector does. */
async function fill(connectionString: string, name: string, store: ProjectionStore) {
  const log = await openEventStoreDb({ connectionString });
  await log.head();
  const filled = new AbortController();
  let events = 0;
  const cpu = process.threadCpuUsage();
  const began = performance.now();
  await runProjection({
    log: withTextsForRows(log, memoryKeys(log).keys),
    store,
    signal: filled.signal,
    logger: QUIET,
    onProgress(batch) {
      ({ events } = batch);
      if (batch.caughtUp) filled.abort();
    },
  });
  const seconds = (performance.now() - began) / 1_000;
  const { user, system } = process.threadCpuUsage(cpu);
  say(
    `${name}: ${events} events, ${Math.round(events / seconds)}/s, ${((user + system) / events).toFixed(1)} µs of CPU time each`,
  );
  await store.close();
  await log.close();
}

const folder = await temporaryFolder();
const url = process.env['EVENTSTOREDB_URL'];
// The services inherit the environment.
delete process.env['EVENTSTOREDB_URL'];
const { version } = values;
const standIn = url ? undefined : await startEventStoreDbProcess({ folder, version });
const connectionString = url ?? standIn!.connectionString;
say(standIn ? `EventStoreDB ${version} (stand-in)` : 'the server of EVENTSTOREDB_URL');

const model = await startProcess(['test/bench/processes/modelServer.ts']);
const cluster = await startService(model.line, { EVENTSTOREDB_URL: connectionString });
const embedded = await startService(model.line, {});
for (const service of [cluster, embedded]) await measureRuns(service, 16);
for (const connections of [1, 16, 64]) await compareRuns(cluster, embedded, connections);
for (const service of [cluster, embedded]) {
  await service.stop();
  await rm(service.folder, { recursive: true });
}
await model.stop();

const store = await openEventStoreDb({ connectionString });
await addEvents(store, Number(values.events));
await store.close();
await fill(
  connectionString,
  'SQLite',
  await openSqliteProjectionStore({ folder: join(folder, 'read-models') }),
);
const postgres = await startPostgresProcess({ fsync: true });
if (!postgres) throw new Error('no PostgreSQL: run npm ci with optional dependencies');
const database = await createTestDatabase(postgres.url);
await fill(connectionString, 'PostgreSQL', await openActive(database.url));
await database.drop();
await postgres.close();
await standIn?.kill('SIGTERM');
await rm(folder, { recursive: true });
