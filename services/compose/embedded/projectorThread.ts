/**
 * The thread of projector and prover, started as a worker with a ThreadData because open databases
 * can't be passed to a thread. Both follow the log, and must not delay requests.
 */
import { flushCompileCache } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { measureSpace } from '../../../infra/files/freeSpace.ts';
import {
  currentGeneration,
  retireGenerationsBefore,
} from '../../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { openEventLog } from '../eventStore.ts';
import { openTextKeys } from '../textKeys.ts';
import { isBelow, parseFreeLevel } from '../../../shared/storage/diskWatch.ts';
import { abortable } from '../../../shared/lib/concurrency/abortable.ts';
import { collectWhenIdle } from '../../../shared/lib/memory/collectWhenIdle.ts';
import { createKeyring } from '../../../shared/eventlog/encryption/keyring.ts';
import { withTextsForRows } from '../../../shared/eventlog/encryption/protectedStore.ts';
import { createRecentTexts } from '../../../shared/search/recentTexts.ts';
import { locateReadModels } from '../logLocation.ts';
import { runProverInThread, type ThreadData } from '../features/prover.ts';
import { followGenerations } from '../../followers/projector/followGenerations.ts';
import type { ThreadMessage, ProjectorRequest } from '../../followers/projector/startThread.ts';
import { createGathering, type ProjectorLogger } from '../../followers/projector/projection.ts';

if (!parentPort) throw new Error('this file is a worker; startProjectorThread starts it');
const port = parentPort;
const data = workerData as ThreadData;
const { place } = data;
const stopFree = parseFreeLevel(data.stopFree);
const folder = locateReadModels(place);

const tell = (message: ThreadMessage): void => port.postMessage(message);

const logAt = (level: keyof ProjectorLogger) => (fields: object, message: string) =>
  tell({ type: 'log', level, fields, message });

/**
 * Events that arrive within this time are applied in one batch, and turns indexed together, unless a
 * reader or a search waits for them or much text has gathered.
 */
const GATHER_MS = 250;

const closing = new AbortController();
const gathering = createGathering(GATHER_MS);
const indexGathering = createGathering(GATHER_MS);
const recentTexts = createRecentTexts();
port.on('message', (request: ProjectorRequest) => {
  if (request === 'close') closing.abort();
  else if (request === 'apply') gathering.requestBatch();
  else if (request === 'index') indexGathering.requestBatch();
  else recentTexts.add(request);
});

const logger: ProjectorLogger = { info: logAt('info'), warn: logAt('warn'), error: logAt('error') };
flushCompileCache();
collectWhenIdle();
const log = await openEventLog(place.log, logger);
const keys = await openTextKeys(place);
const keyring = createKeyring({ ...keys, log });
/** Resolved once the read models have caught up, or can't. */
const filled = Promise.withResolvers<void>();
const proven = runProverInThread(data, {
  log,
  keys: keyring,
  logger,
  signal: closing.signal,
  untilFilled: (signal) => abortable(filled.promise, signal).catch(() => undefined),
});
const indexKeys = {
  ...keyring,
  recentTexts,
  evict(...[stream, ids]: Parameters<typeof keyring.evict>) {
    recentTexts.forget(stream);
    keyring.evict(stream, ids);
  },
};
await followGenerations({
  log: withTextsForRows(log, indexKeys),
  keys: indexKeys,
  signal: closing.signal,
  logger,
  generations: {
    async open(atLeast) {
      const store = await openSqliteProjectionStore({ folder, atLeast });
      tell({ type: 'opened' });
      return store;
    },
    current: () => currentGeneration(folder),
    retireBefore: (generation) => retireGenerationsBefore(folder, generation),
  },
  gathering,
  indexGathering,
  async hasSpace() {
    const space = await measureSpace(folder);
    return !space || !isBelow(stopFree, space);
  },
  onProgress(batch) {
    if (batch.caughtUp) filled.resolve();
    tell({ type: 'progress', batch });
  },
  report(report) {
    if (report.reason !== undefined) filled.resolve();
    tell(report);
  },
});
await proven;
await log.close();
await keys.store.close();
data.reports.close();
port.close();
