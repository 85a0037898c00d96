import { LRUCache } from 'lru-cache';
import { typeIds } from '../../infra/ids/typeIds.ts';
import { startOfflineModel } from '../../infra/offline-model/server.ts';
import { createChatModels } from '../../infra/openai/chatModels.ts';
import { loadRegistry } from '../../infra/openai/registry.ts';
import { createTokenCounter } from '../../infra/tokenizer/tokenCounter.ts';
import { createToolbox } from '../../infra/tools/toolbox.ts';
import type { RunContext } from '../../shared/commands/run/context.ts';
import { createLeftOpen } from '../../shared/commands/recovery/leftOpen.ts';
import { charsOf } from '../../shared/commands/run/recallSession.ts';
import { createRunsInFlight } from '../../shared/commands/run/runsInFlight.ts';
import { createSessionQueue } from '../../shared/commands/run/sessionQueue.ts';
import type { Config } from '../../shared/config.ts';
import type { ChatModels } from '../../shared/ports/chatModel.ts';
import type { Clock, Ids } from '../../shared/ports/clock.ts';
import type { CloseLater } from './opening.ts';

/** Turns whose token count is remembered: some megabytes at the most. */
const REMEMBERED_TURNS = 20_000;
/** Of sessions that went on lately: some ten megabytes. */
const REMEMBERED_CHARS = 8 * 1024 * 1024;

export const systemClock: Clock = { now: () => Date.now() };
export const systemIds: Ids = typeIds;

async function openModels(config: Config, closeLater: CloseLater): Promise<ChatModels> {
  const offline = await startOfflineModel();
  closeLater(offline.close);
  const registry = await loadRegistry({
    modelsFile: config.MODELS_FILE,
    openaiApiKey: config.OPENAI_API_KEY,
    openaiBaseUrl: config.OPENAI_BASE_URL,
    env: process.env,
    offlineBaseUrl: offline.baseUrl,
  });
  const models = createChatModels({
    ...registry,
    limits: {
      attemptTimeoutMs: config.MODEL_ATTEMPT_TIMEOUT_MS,
      maxRetries: config.MODEL_MAX_RETRIES,
    },
  });
  closeLater(models.close);
  return models;
}

/** What differs between a service in one process and one replica of many. */
export type RunStorage = Pick<
  RunContext,
  'store' | 'damaged' | 'readModels' | 'known' | 'instance' | 'logger'
>;

/** What running agents takes. Errors: `configuration_invalid` (the models file). */
export async function openRunContext(
  config: Config,
  storage: RunStorage,
  closeLater: CloseLater,
): Promise<RunContext> {
  return {
    ...storage,
    clock: systemClock,
    ids: systemIds,
    catalogue: {
      models: await openModels(config, closeLater),
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
