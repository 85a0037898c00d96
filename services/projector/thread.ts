/**
 * The projector's thread in embedded mode: started as a worker with `{ folder }`, the data folder. Like wire.ts it chooses
 * adapters, because a thread can't be handed open databases.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { currentGeneration, retireGenerationsBefore } from '../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteEventLog } from '../../infra/sqlite/eventStoreLog.ts';
import { followGenerations } from './followGenerations.ts';
import type { ProjectorMessage } from './messages.ts';
import type { ProjectorLogger } from './runProjection.ts';

if (!parentPort) throw new Error('this file is a worker; startProjectorThread starts it');
const port = parentPort;
const { folder } = workerData as { folder: string };

const tell = (message: ProjectorMessage): void => port.postMessage(message);

const logAt = (level: keyof ProjectorLogger) => (fields: object, message: string) => tell({ type: 'log', level, fields, message });

const closing = new AbortController();
port.once('message', () => closing.abort());

const log = openSqliteEventLog({ folder });
await followGenerations({
  log,
  signal: closing.signal,
  logger: { info: logAt('info'), warn: logAt('warn'), error: logAt('error') },
  generations: {
    open: (atLeast) => openSqliteProjectionStore({ folder, atLeast }),
    current: () => currentGeneration(folder),
    retireBefore: (generation) => retireGenerationsBefore(folder, generation),
  },
  onProgress: ({ position, caughtUp, percent, generation, parked }) => tell({ type: 'progress', progress: { position, caughtUp, percent, generation }, parked }),
});
await log.close();
port.close();
