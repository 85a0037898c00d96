import { LRUCache } from 'lru-cache';
import { createSchemaChecker } from '../../infra/jsonschema/schemaChecker.ts';
import { createMemoryBroadcast } from '../../infra/broadcast/memory.ts';
import { createTextDiffer } from '../../infra/textdiff/textDiffer.ts';
import { createTokenCounter } from '../../infra/tokenizer/tokenCounter.ts';
import { createOpenTurnCloser } from '../../shared/runs/recovery/openTurnCloser.ts';
import { createOpenTurnQueue } from '../../shared/runs/recovery/openTurnQueue.ts';
import { createAdmissionControl } from '../../shared/runs/queueing/admissionControl.ts';
import type { RunContext } from '../../shared/runs/context.ts';
import { REMEMBERED_SEARCHES } from '../../shared/runs/turnSearch.ts';
import { createLiveTurns } from '../../shared/runs/live/liveTurns.ts';
import { cachedSessionChars, originIds } from '../../shared/runs/queueing/sessionCache.ts';
import { createMirroredTurns } from '../../shared/runs/live/mirrorTurns.ts';
import { createRunsInFlight } from '../../shared/runs/queueing/runsInFlight.ts';
import { startSendingDeltas } from '../../shared/runs/live/sendDeltas.ts';
import { createSessionQueue } from '../../shared/runs/queueing/sessionQueue.ts';
import { createTurnWatch, createTurnSignals } from '../../shared/runs/queueing/turnWatch.ts';
import { createIndexedCache } from '../../shared/lib/memory/indexedCache.ts';
import { heapBytesFor, type MemoryLedger } from '../../shared/lib/memory/ledger.ts';
import { LIMITS } from '../../shared/limits.ts';
import { compileEventValidators } from '../../shared/eventlog/domainEvent.ts';
import type { Broadcast } from '../../shared/ports/broadcast.ts';
import { createPermitPool } from '../../shared/lib/concurrency/capacity.ts';
import { registerResource } from '../../shared/lib/concurrency/resources.ts';
import { createUserPermits } from '../../shared/chatTokens/userPermits.ts';
import { createLimitsCache } from '../../shared/accounts/accountLimits.ts';
import { startOpenTurnCloser, startTurnWatch } from '../process/upkeep/periodicTask.ts';
import type { ProcessPart, ServedRuns } from '../process/processParts.ts';
import { openModels } from './features/models.ts';
import type { Opening } from './opening.ts';
import { systemClock, systemIds } from './system.ts';
import { createReplayStarts } from './features/replays.ts';
import { openTools } from './features/tools.ts';
import { entriesUpTo } from '../../shared/lib/memory/entriesUpTo.ts';

/** The part of the context that differs between an embedded service and a replica. */
type RunStorage = Pick<
  ServedRuns,
  'store' | 'quotas' | 'damaged' | 'readModels' | 'cachedRows' | 'instance' | 'rateLimiter'
> & {
  /** Exchanges the output and the ends of turns with the other processes over the log. */
  broadcast?: Broadcast;
  /** True if other processes may write to the log without a broadcast. */
  sharesLog?: boolean;
};

/** V8 takes two bytes for a character beyond Latin-1, and for all others of its string. */
const BYTES_PER_CHAR = 2;

function createSessionCache(memory: MemoryLedger): RunContext['runState']['sessionCache'] {
  const limit = Math.floor(Math.min(LIMITS.cache.sessionChars, heapBytesFor('sessionCache') / 2));
  const evictTo = (chars: number): void => {
    while (cache.size > 0 && cache.calculatedSize > chars) cache.pop();
  };
  const availableBytes = memory.lendCache({
    bytes: limit * BYTES_PER_CHAR,
    evictTo: (bytes) => evictTo(bytes / BYTES_PER_CHAR),
  });
  const cache: RunContext['runState']['sessionCache'] = createIndexedCache({
    maxSize: limit,
    sizeCalculation: cachedSessionChars,
    groupsOf: originIds,
    onInsert: () => evictTo(availableBytes() / BYTES_PER_CHAR),
  });
  registerResource('session_cache', {
    usage: () => ({ bytes: { limit, used: cache.calculatedSize } }),
  });
  return cache;
}

/** The events of an ordinary run. */
const RUN_EVENTS = [
  'session.started.v1',
  'session.turn_started.v1',
  'session.turn_completed.v1',
  'session.turn_failed.v1',
] as const;

/** Opens the context of the API and its runs. */
export async function openRunContext(opening: Opening, storage: RunStorage): Promise<ServedRuns> {
  const { config, logger, memory, opened } = opening;
  const { broadcast: sharedBroadcast, sharesLog, ...stores } = storage;
  const broadcast = sharedBroadcast ?? createMemoryBroadcast().join('alone');
  const schemas = opened.use(createSchemaChecker());
  const live = createLiveTurns();
  opened.use(startSendingDeltas({ broadcast, live }));
  const signals = sharedBroadcast && createTurnSignals(sharedBroadcast);
  const shared = signals !== undefined || sharesLog === true;
  await compileEventValidators(RUN_EVENTS);
  return {
    ...stores,
    memory,
    accountLimits: createLimitsCache(storage.readModels),
    logger,
    clock: systemClock,
    ids: systemIds,
    catalogue: {
      models: await openModels(opening),
      toolbox: await openTools(opening, schemas),
      schemas,
      defaultComponent: config.COMPONENTS.split(',')[0]!,
    },
    runState: {
      admission: createAdmissionControl(memory),
      sessionQueue: createSessionQueue(),
      runsInFlight: createRunsInFlight(),
      liveTurns: live,
      mirroredTurns: opened.use(createMirroredTurns({ broadcast, keys: storage.store.keys })),
      turnWatch: createTurnWatch({ store: storage.store, signals, shared }),
      acquireUserRun: createUserPermits(LIMITS.chatTokens.runs, 'runs at once'),
      turnWaits: createPermitPool('turn_waits', { permits: LIMITS.turn.waiting, bytes: Infinity }),
      sessionCache: createSessionCache(memory),
      failedCompactions: new LRUCache(entriesUpTo(LIMITS.cache.failedCompactions)),
      openTurnQueue: createOpenTurnQueue(),
      startingTurns: new Map(),
      turnEndLookups: new Map(),
      turnSearches: new LRUCache(entriesUpTo(REMEMBERED_SEARCHES)),
    },
    budget: {
      counter: opened.use(createTokenCounter()),
      turnTokens: new LRUCache(entriesUpTo(LIMITS.cache.turnTokens)),
    },
    limits: {
      timeoutMs: config.RUN_TIMEOUT_MS,
      waitMs: config.RUN_WAIT_MS,
      requestsPerSecond: config.RATE_LIMIT_PER_SECOND,
      storeWaitMs: config.STORE_WAIT_MS,
    },
    visibilityWaitMs: config.VISIBILITY_WAIT_MS,
    differ: opened.use(createTextDiffer()),
    replayStarts: createReplayStarts(),
  };
}

/** The part that watches turns that other processes may end. */
export const turnWatchPart = ({ runState }: Pick<RunContext, 'runState'>): ProcessPart => ({
  upkeep: () => startTurnWatch(runState.turnWatch),
});

/** The part of the runs: it reports them, and closes the turns that this process left open. */
export const runsPart = (api: RunContext): ProcessPart => ({
  health: async () => {
    const open_circuits = api.catalogue.models.openCircuits?.() ?? [];
    return {
      runs_in_flight: api.runState.admission.activeCount(),
      runs_waiting: api.runState.admission.waitingCount(),
      tool_servers: [...api.catalogue.toolbox.health()],
      ...(open_circuits.length > 0 && { open_circuits: [...open_circuits] }),
    };
  },
  upkeep: () => startOpenTurnCloser(createOpenTurnCloser(api)),
});
