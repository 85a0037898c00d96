import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import { typeIds } from '../infra/ids/typeIds.ts';
import { startOfflineModel } from '../infra/offline-model/server.ts';
import { createChatModels } from '../infra/openai/chatModels.ts';
import { loadRegistry } from '../infra/openai/registry.ts';
import { openEventStore, readModelsFolder } from './eventStore.ts';
import { openSqliteReadModels } from '../infra/sqlite/readModels/readModels.ts';
import { acquireServerLock } from '../infra/sqlite/serverLock.ts';
import { createTokenCounter } from '../infra/tokenizer/tokenCounter.ts';
import { createToolbox } from '../infra/tools/toolbox.ts';
import type { RunContext } from '../shared/commands/run/context.ts';
import { createRunsInFlight } from '../shared/commands/run/runsInFlight.ts';
import { createSessionQueue } from '../shared/commands/run/sessionQueue.ts';
import type { Config } from '../shared/config.ts';
import { TurnlogError } from '../shared/errors.ts';
import type { Logger } from '../shared/logger.ts';
import type { ChatModels } from '../shared/ports/chatModel.ts';
import type { Clock } from '../shared/ports/clock.ts';
import type { Position } from '../shared/ports/eventStore.ts';
import type { ProgressFeed } from '../shared/projections/progress.ts';
import { openPublisher } from './publisher.ts';
import { startProjectorThread, THREAD_LIMITS } from './projector/startProjectorThread.ts';
import { startRelay, type RunningRelay } from './relay/startRelay.ts';

/** Turns whose token count is remembered: some megabytes at the most. */
const REMEMBERED_TURNS = 20_000;

export const systemClock: Clock = { now: () => Date.now() };

export interface Turnlog {
  context: RunContext;
  projector: { caughtUp: () => boolean; progress: ProgressFeed };
  /** Where brokers are configured. */
  relay: RunningRelay | undefined;
  /** The folder that holds the log, absolute. */
  dataFolder: string;
  close(): Promise<void>;
}

/** Things that were opened, closed in the reverse order, also when opening the next one fails. */
async function opening<Result>(open: (closeLater: (close: () => unknown) => void) => Promise<Result>): Promise<{ opened: Result; close: () => Promise<void> }> {
  const closers: Array<() => unknown> = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).toReversed()) await closer();
  };
  try {
    return { opened: await open((closer) => closers.push(closer)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openModels(config: Config, closeLater: (close: () => unknown) => void): Promise<ChatModels> {
  const offline = await startOfflineModel();
  closeLater(offline.close);
  const registry = await loadRegistry({
    modelsFile: config.MODELS_FILE,
    openaiApiKey: config.OPENAI_API_KEY,
    openaiBaseUrl: config.OPENAI_BASE_URL,
    env: process.env,
    offlineBaseUrl: offline.baseUrl,
  });
  const models = createChatModels({ ...registry, limits: { attemptTimeoutMs: config.MODEL_ATTEMPT_TIMEOUT_MS, maxRetries: config.MODEL_MAX_RETRIES } });
  closeLater(models.close);
  return models;
}

/** Makes a folder that only its owner can read. Errors: `invalid_request` when that is not possible. */
export function prepareDataFolder(path: string): string {
  const folder = resolve(path);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new TurnlogError('invalid_request', `The data folder ${folder} can't be made; set DATA_DIR to a folder that this user may write.`, { cause: error });
  }
  return folder;
}

/** The name of the folder's server, made at the first start. The server lock sees to it that only one process has it. */
function instanceIdOf(folder: string): string {
  const file = join(folder, 'instance-id');
  const known = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (known !== '') return known;
  const made = typeIds.uuid();
  writeFileSync(file, `${made}\n`, { mode: 0o600 });
  return made;
}

/** Relays to Kafka where brokers are configured. */
async function openRelay(config: Config, { store, clock, logger }: Pick<RunContext, 'store' | 'clock'> & { logger: Logger }): Promise<RunningRelay | undefined> {
  if (config.KAFKA_BROKERS === undefined) return undefined;
  const publisher = await openPublisher(config, logger);
  return startRelay({ log: store, publisher, startAfter: config.KAFKA_START_AFTER as Position | undefined, takeOverMs: config.KAFKA_TAKEOVER_MS, clock, logger });
}

/**
 * The service in one process: event store (in the data folder, or a cluster), read models, projector and relay.
 * Errors: `data_folder_in_use`, `store_unavailable`, `invalid_request` (the models file, the data folder).
 */
export async function wire(config: Config, logger: Logger): Promise<Turnlog> {
  const dataFolder = prepareDataFolder(config.DATA_DIR);
  const { opened, close } = await opening(async (closeLater) => {
    const lock = acquireServerLock(dataFolder);
    closeLater(lock.release);
    const place = { dataFolder, eventStoreDbUrl: config.EVENTSTOREDB_URL };
    const store = await openEventStore(place, logger);
    closeLater(store.close);
    const models = await openModels(config, closeLater);
    const projector = await startProjectorThread({ spawn: () => new Worker(new URL('projector/thread.ts', import.meta.url), { workerData: place, resourceLimits: THREAD_LIMITS }), logger });
    closeLater(projector.close);
    const readModels = openSqliteReadModels({ folder: readModelsFolder(place), progress: projector.progress });
    closeLater(readModels.close);
    const context: RunContext = {
      store,
      readModels,
      models,
      logger,
      clock: systemClock,
      ids: typeIds,
      toolbox: createToolbox({ clock: systemClock }),
      components: config.COMPONENTS.split(','),
      visibilityWaitMs: config.VISIBILITY_WAIT_MS,
      queue: createSessionQueue(),
      inFlight: createRunsInFlight(),
      budget: { counter: createTokenCounter(), turnTokens: new LRUCache({ max: REMEMBERED_TURNS }) },
      limits: { timeoutMs: config.RUN_TIMEOUT_MS, waitMs: config.RUN_WAIT_MS },
      leftOpen: new Set(),
      instanceId: instanceIdOf(dataFolder),
    };
    const relay = await openRelay(config, { ...context, logger });
    closeLater(() => relay?.close());
    return { context, projector, relay };
  });
  return { ...opened, dataFolder, close };
}
