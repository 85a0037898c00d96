import { LRUCache } from 'lru-cache';
import { createTokenCounter } from '../../infra/tokenizer/tokenCounter.ts';
import { createToolbox } from '../../infra/tools/toolbox.ts';
import { createLeftOpenCloser } from '../../shared/commands/recovery/closeLeftOpen.ts';
import { createLeftOpen } from '../../shared/commands/recovery/leftOpen.ts';
import type { RunContext } from '../../shared/commands/run/context.ts';
import { charsOf } from '../../shared/commands/run/recallSession.ts';
import { createRunsInFlight } from '../../shared/commands/run/runsInFlight.ts';
import { createSessionQueue } from '../../shared/commands/run/sessionQueue.ts';
import { startClosing } from '../server/sweep.ts';
import type { Part } from '../server/turnlog.ts';
import { openModels } from './models.ts';
import type { Opening } from './opening.ts';
import { systemClock, systemIds } from './system.ts';

/** Turns whose token count is remembered: some megabytes at the most. */
const REMEMBERED_TURNS = 20_000;
/** Of sessions that went on lately: some ten megabytes. */
const REMEMBERED_CHARS = 8 * 1024 * 1024;

/** What differs between a service in one process and one replica of many. */
type RunStorage = Pick<RunContext, 'store' | 'damaged' | 'readModels' | 'known' | 'instance'>;

/** What the API and its runs work with. Errors: `configuration_invalid` (the models file). */
export async function openRunContext(opening: Opening, storage: RunStorage): Promise<RunContext> {
  const { config, logger } = opening;
  return {
    ...storage,
    logger,
    clock: systemClock,
    ids: systemIds,
    catalogue: {
      models: await openModels(opening),
      toolbox: createToolbox({ clock: systemClock }),
      components: config.COMPONENTS.split(','),
    },
    sessions: {
      queue: createSessionQueue(),
      inFlight: createRunsInFlight(),
      memory: new LRUCache({ maxSize: REMEMBERED_CHARS, sizeCalculation: charsOf }),
      leftOpen: createLeftOpen(),
    },
    budget: { counter: createTokenCounter(), turnTokens: new LRUCache({ max: REMEMBERED_TURNS }) },
    limits: { timeoutMs: config.RUN_TIMEOUT_MS, waitMs: config.RUN_WAIT_MS },
    visibilityWaitMs: config.VISIBILITY_WAIT_MS,
  };
}

/** The runs as a part of the process: it closes the turns that it had to leave open itself. */
export const runsPart = (api: RunContext): Part => ({
  health: async () => ({ runs_in_flight: api.sessions.inFlight.count() }),
  upkeep: () => startClosing(createLeftOpenCloser(api)),
});
