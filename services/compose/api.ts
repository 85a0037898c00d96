import { LRUCache } from 'lru-cache';
import { createMemoryBroadcast } from '../../infra/broadcast/memory.ts';
import { createTokenCounter } from '../../infra/tokenizer/tokenCounter.ts';
import { createToolbox } from '../../infra/tools/toolbox.ts';
import { createLeftOpenCloser } from '../../shared/commands/recovery/closeLeftOpen.ts';
import { createLeftOpen } from '../../shared/commands/recovery/leftOpen.ts';
import { createAdmission } from '../../shared/commands/run/admission.ts';
import type { RunContext } from '../../shared/commands/run/context.ts';
import { createLiveTurns } from '../../shared/commands/run/liveTurns.ts';
import { charsOf } from '../../shared/commands/run/recallSession.ts';
import { createMirroredTurns } from '../../shared/commands/run/mirrorTurns.ts';
import { createRunsInFlight } from '../../shared/commands/run/runsInFlight.ts';
import { startSendingDeltas } from '../../shared/commands/run/sendDeltas.ts';
import { createSessionQueue } from '../../shared/commands/run/sessionQueue.ts';
import type { Config } from '../../shared/config.ts';
import { createFairLine } from '../../shared/fairLine.ts';
import { heapFor } from '../../shared/heap.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { Broadcast } from '../../shared/ports/broadcast.ts';
import { rememberedLimits } from '../../shared/queries/accountLimits.ts';
import { startClosing } from '../server/sweep.ts';
import type { Part } from '../server/turnlog.ts';
import { openModels } from './models.ts';
import type { Opening } from './opening.ts';
import { systemClock, systemIds } from './system.ts';

/** What differs between a service in one process and one replica of many. */
type RunStorage = Pick<
  RunContext,
  'store' | 'damaged' | 'readModels' | 'known' | 'instance' | 'rateLimiter'
> & {
  /** How this process speaks with those that run turns which are followed here; where it is not alone. */
  broadcast?: Broadcast;
};

/** What the runs of this process, and of one account of them, may take up. */
function admissionBounds({ MAX_RUNS, MAX_RUNS_PER_ACCOUNT, MAX_PROMPT_BYTES }: Config) {
  const bytes = MAX_PROMPT_BYTES ?? heapFor('prompts');
  const ofOne = Math.min(MAX_RUNS_PER_ACCOUNT ?? Math.ceil(MAX_RUNS / 2), MAX_RUNS);
  return { all: { places: MAX_RUNS, bytes }, share: { places: ofOne, bytes: bytes / 2 } };
}

/** What the API and its runs work with. Errors: `configuration_invalid` (the models file). */
export async function openRunContext(opening: Opening, storage: RunStorage): Promise<RunContext> {
  const { config, logger, opened } = opening;
  const { broadcast = createMemoryBroadcast().join('alone'), ...stores } = storage;
  const live = createLiveTurns();
  opened.use(startSendingDeltas({ broadcast, live }));
  return {
    ...stores,
    accountLimits: rememberedLimits(storage.readModels),
    logger,
    clock: systemClock,
    ids: systemIds,
    catalogue: {
      models: await openModels(opening),
      toolbox: createToolbox({ clock: systemClock }),
      components: config.COMPONENTS.split(','),
    },
    sessions: {
      admission: createAdmission(admissionBounds(config)),
      reads: createFairLine({ places: LIMITS.run.sessionReads, bytes: Infinity }),
      queue: createSessionQueue(),
      inFlight: createRunsInFlight(),
      live,
      elsewhere: opened.use(createMirroredTurns({ broadcast, keys: storage.store.keys })),
      memory: new LRUCache({ maxSize: LIMITS.cache.sessionChars, sizeCalculation: charsOf }),
      leftOpen: createLeftOpen(),
    },
    budget: {
      counter: opened.use(createTokenCounter()),
      turnTokens: new LRUCache({ max: LIMITS.cache.turnTokens }),
    },
    limits: {
      timeoutMs: config.RUN_TIMEOUT_MS,
      waitMs: config.RUN_WAIT_MS,
      requestsPerSecond: config.RATE_LIMIT_PER_SECOND,
    },
    visibilityWaitMs: config.VISIBILITY_WAIT_MS,
  };
}

/** The runs as a part of the process: it closes the turns that it had to leave open itself. */
export const runsPart = (api: RunContext): Part => ({
  health: async () => ({
    runs_in_flight: api.sessions.admission.inFlight(),
    runs_waiting: api.sessions.admission.waiting(),
  }),
  upkeep: () => startClosing(createLeftOpenCloser(api)),
});
