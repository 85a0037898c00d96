import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import { isModelTrouble, type ChatModels } from '../../shared/ports/chatModel.ts';
import { createCircuit, type Circuit, type CircuitLimits, type Outcome } from './circuit.ts';

interface GatewayOptions {
  /** The models to call. */
  models: ChatModels;
  limits: CircuitLimits;
  logger: Pick<Logger, 'info' | 'warn'>;
}

const PROBE_RETRY_MS = 1_000;

function circuitOpenError(provider: string, waitMs: number): TurnlogError {
  const seconds = Math.max(1, Math.ceil(Math.max(waitMs, PROBE_RETRY_MS) / 1000));
  return new TurnlogError(
    'model_overloaded',
    'The model provider has failed too often, and is not asked for some seconds.',
    {
      retriable: true,
      retryAfterSeconds: seconds,
      cause: new Error(`the circuit to ${provider} is open`),
    },
  );
}

/** Classifies a failed call. A refused request counts as an answer of the provider. */
function outcomeOf(error: unknown, signal: AbortSignal): Outcome {
  if (signal.aborted) return 'given_up';
  return isModelTrouble(error) ? 'failed' : 'answered';
}

/**
 * Wraps models in one circuit breaker per provider, so that runs do not all wait for a provider
 * that is down. While the circuit is open, `complete` rejects at once with `model_overloaded`.
 */
export function createModelGateway({ models, limits, logger }: GatewayOptions): ChatModels {
  const circuits = new Map<string, Circuit>();

  function circuitTo(provider: string): Circuit {
    const existing = circuits.get(provider);
    if (existing) return existing;
    const circuit = createCircuit(limits, (state) =>
      state === 'open'
        ? logger.warn({ provider }, 'a model provider fails, and is not asked for a while')
        : logger.info({ provider }, 'a model provider answers again'),
    );
    circuits.set(provider, circuit);
    return circuit;
  }

  return {
    list: () => models.list(),
    find: (id) => models.find(id),
    awaitsList: () => models.awaitsList?.() ?? false,
    async complete(modelId, request, signal, caller) {
      const provider = models.find(modelId)?.provider;
      if (provider === undefined) return models.complete(modelId, request, signal, caller);
      const circuit = circuitTo(provider);
      const settle = circuit.admit(caller.account_id);
      if (!settle) throw circuitOpenError(provider, circuit.testableInMs(caller.account_id));
      try {
        const answer = await models.complete(modelId, request, signal, caller);
        settle('answered');
        return answer;
      } catch (error) {
        settle(outcomeOf(error, signal));
        throw error;
      }
    },
    openCircuits: () =>
      [...circuits].flatMap(([provider, { isOpen }]) => (isOpen() ? [provider] : [])),
  };
}
