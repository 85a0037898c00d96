import { createModelGateway } from '../../../infra/gateway/modelGateway.ts';
import {
  createOfflineModel,
  OFFLINE_BASE_URL,
  OFFLINE_HOST,
} from '../../../infra/offline-model/server.ts';
import { createChatModels } from '../../../infra/openai/chatModels.ts';
import { loadRegistry, offlineModel } from '../../../infra/openai/registry.ts';
import { errorSummary } from '../../../shared/lib/errors/errorSummary.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { ChatModels } from '../../../shared/ports/chatModel.ts';
import { observeModels } from './metrics.ts';
import type { Opening } from '../opening.ts';

/** Times between two attempts to get a provider's list of models. */
const LIST_PAUSES = { firstMs: 2_000, longestMs: 60_000 };

/** The wait of a start for a provider's list: one that arrives quickly is offered from the start. */
const LIST_WAIT_MS = 500;
/**
 * How long models that the provider may list are unavailable instead of unsupported. A model server
 * that starts together with this process refuses connections at first.
 */
const AWAIT_LIST_MS = 60_000;

/** Connections to a provider that are closing after an answer, or ask for its list of models. */
const SPARE_CONNECTIONS = 256;

/**
 * Offers the models that a provider lists. If it does not answer promptly at the start, it is queried
 * in the background until it does. The returned function is true while a list may arrive soon: until
 * the provider has answered, if only to refuse, or a minute has passed.
 */
async function offerListedModels(
  models: Pick<ReturnType<typeof createChatModels>, 'list' | 'offerModelsOf'>,
  provider: string,
  logger: Pick<Logger, 'debug' | 'info' | 'warn'>,
  signal: AbortSignal,
): Promise<() => boolean> {
  let awaitedUntil = performance.now() + AWAIT_LIST_MS;
  const ask = async (level: 'warn' | 'debug'): Promise<boolean> => {
    try {
      await models.offerModelsOf(provider, signal);
      awaitedUntil = 0;
      const offered = models.list().map(({ id }) => id);
      logger.info({ provider, models: offered }, 'the models that the provider lists are offered');
      return true;
    } catch (error) {
      if (!isTurnlogError(error) || !error.retriable) awaitedUntil = 0;
      if (!signal.aborted)
        logger[level](
          { provider, ...errorSummary(error) },
          "the provider at OPENAI_BASE_URL does not list its models; OpenAI's are offered until it does. Set MODELS_FILE if it never does",
        );
      return false;
    }
  };
  const keepAsking = async (): Promise<void> => {
    const pauses = createBackoff(LIST_PAUSES);
    for (let answered = false; !answered && !signal.aborted;) {
      await sleepUntilAborted(pauses.next(), { signal, ref: false });
      answered = signal.aborted || (await ask('debug'));
    }
  };
  const askUntilAnswered = async (): Promise<void> => {
    if (!(await ask('warn'))) void keepAsking();
  };
  await resolvesWithin(askUntilAnswered(), LIST_WAIT_MS);
  return () => performance.now() < awaitedUntil;
}

/** Opens the configured models, and the built-in one that needs no provider. */
export async function openModels({
  config,
  logger,
  memory,
  metrics,
  opened,
}: Opening): Promise<ChatModels> {
  const registry = await loadRegistry({
    modelsFile: config.MODELS_FILE,
    openaiApiKey: config.OPENAI_API_KEY,
    openaiBaseUrl: config.OPENAI_BASE_URL,
    env: process.env,
    offlineBaseUrl: OFFLINE_BASE_URL,
  });
  const limits = {
    attemptTimeoutMs: config.MODEL_ATTEMPT_TIMEOUT_MS,
    maxRetries: config.MODEL_MAX_RETRIES,
    // A run makes one call at a time, and accounts share the runs in flight.
    maxConnections: config.MAX_RUNS + SPARE_CONNECTIONS,
  };
  const localServers = new Map([[OFFLINE_HOST, createOfflineModel().connect]]);
  const models = opened.adopt(
    createChatModels({ ...registry, limits, memory, localServers }),
    ({ close }) => close(),
  );
  // In the background: nothing waits for it.
  models.warmUp(offlineModel).catch(() => undefined);
  const listing = { ...models };
  if (registry.listedBy !== undefined) {
    const asking = opened.adopt(new AbortController(), (controller) => controller.abort());
    listing.awaitsList = await offerListedModels(models, registry.listedBy, logger, asking.signal);
  }
  const gateway = createModelGateway({
    models: listing,
    limits: {
      failures: config.MODEL_CIRCUIT_FAILURES,
      openMs: config.MODEL_CIRCUIT_OPEN_MS,
      now: () => performance.now(),
    },
    logger,
  });
  return observeModels(gateway, metrics);
}
