import { createModelGateway } from '../../../infra/gateway/modelGateway.ts';
import {
  createOfflineModel,
  OFFLINE_BASE_URL,
  OFFLINE_HOST,
} from '../../../infra/offline-model/server.ts';
import { createChatModels } from '../../../infra/openai/chatModels.ts';
import { loadRegistry } from '../../../infra/openai/registry.ts';
import type { ChatModels } from '../../../shared/ports/chatModel.ts';
import { observeModels } from './metrics.ts';
import type { Opening } from '../opening.ts';

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
  };
  const localServers = new Map([[OFFLINE_HOST, createOfflineModel().connect]]);
  const models = opened.adopt(
    createChatModels({ ...registry, limits, memory, localServers }),
    ({ close }) => close(),
  );
  await models.load();
  const gateway = createModelGateway({
    models,
    limits: {
      failures: config.MODEL_CIRCUIT_FAILURES,
      openMs: config.MODEL_CIRCUIT_OPEN_MS,
      now: () => performance.now(),
    },
    logger,
  });
  return observeModels(gateway, metrics);
}
