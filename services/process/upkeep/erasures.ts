import { createUpToDateReader, SHOWN_WITHIN_MS } from '../../../shared/erasure/eraseWithReplays.ts';
import { createErasureFinisher } from '../../../shared/erasure/finishErasures.ts';
import { createErasurePoller, evictAll, evictErased } from '../../../shared/erasure/evictErased.ts';
import type { CommandContext } from '../../../shared/commandHandling/context.ts';
import type { ErasureContext } from '../../../shared/erasure/retention/requireErasable.ts';
import type { RunContext } from '../../../shared/runs/context.ts';
import type { KeyStore } from '../../../shared/ports/keyStore.ts';
import { createRestoredKeysCheck } from '../../../shared/erasure/restored/restoredKeys.ts';
import { agentListCache } from '../../api/agents/listCache.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { retryUntilStoreAvailable } from '../startup/retryUntilStoreAvailable.ts';
import { startPolling, startSweeper } from './periodicTask.ts';
import type { ProcessPart } from '../processParts.ts';

const pollPart = (poll: () => Promise<void>, logger: Logger): ProcessPart => ({
  prepare: (signal) => retryUntilStoreAvailable(poll, logger, signal),
  upkeep: () => startPolling(poll),
});

/** Evicts what other processes erase from the caches of this one, within about a second. */
export function erasureNoticePart(api: RunContext): ProcessPart {
  const { readModels, logger } = api;
  const lists = agentListCache(readModels);
  const poll = createErasurePoller({
    readModels,
    forget(erased) {
      evictErased(api, erased);
      lists.deleteAccount(erased.account_id);
    },
    forgetAll() {
      evictAll(api);
      lists.clear();
    },
  });
  return pollPart(poll, logger);
}

/**
 * Evicts keys of what other processes erase, within about a second, in a process that serves no API but
 * may send texts, to webhooks for example.
 */
export function erasedKeysPart({
  readModels,
  store,
  logger,
}: Pick<CommandContext, 'readModels' | 'store' | 'logger'>): ProcessPart {
  const poll = createErasurePoller({
    readModels,
    forget: ({ stream, key_ids }) => store.keys.evict(stream, key_ids),
    forgetAll: () => store.keys.evictAll(),
  });
  return pollPart(poll, logger);
}

/**
 * Checks whether keys of erased streams exist: the newest erasures at the start, all of them in the
 * background. The process continues, because readers open no text of an erased stream.
 */
export function restoredKeysPart(
  { readModels, logger }: Pick<CommandContext, 'readModels' | 'logger'>,
  keys: KeyStore,
): ProcessPart {
  const { checkNewest, step, reason } = createRestoredKeysCheck({ keys, readModels });
  let isLogged = false;

  function logReason(): void {
    const currentReason = reason();
    if (currentReason !== undefined && !isLogged) logger.error(currentReason);
    isLogged = currentReason !== undefined;
  }
  async function poll(): Promise<void> {
    await step();
    logReason();
  }
  return {
    async prepare(signal) {
      await retryUntilStoreAvailable(checkNewest, logger, signal);
      logReason();
    },
    async health() {
      const currentReason = reason();
      return currentReason === undefined ? {} : { text_keys: { reason: currentReason } };
    },
    upkeep: () => startPolling(poll),
  };
}

type UnfinishedErasuresContext = ErasureContext & Pick<CommandContext, 'readModels' | 'logger'>;

interface UnfinishedErasuresOptions {
  /** Its caches are cleared of erased texts; undefined if this process does not serve the API. */
  api: RunContext | undefined;
  /** True if no other process can be working on erasures begun before this one started. */
  ownsLog: boolean;
  /** How long processes that share the log may retry an append, in milliseconds. */
  appendWaitMs: number;
}

/** Continues erasures that a process left unfinished, or that had to wait for a store. */
export function unfinishedErasuresPart(
  context: UnfinishedErasuresContext,
  { api, ownsLog, appendWaitMs }: UnfinishedErasuresOptions,
): ProcessPart {
  const { readModels, logger } = context;
  const upToDate = createUpToDateReader(readModels, SHOWN_WITHIN_MS);
  const finisher = createErasureFinisher({
    ...context,
    appendWaitMs,
    readModelsAt: upToDate,
    dependentsAt: upToDate,
    onErased: (erased) => api && evictErased(api, erased),
  });
  return {
    ...(ownsLog && {
      prepare: (signal) => retryUntilStoreAvailable(finisher.takeOver, logger, signal),
    }),
    async health() {
      const erasures = finisher.unfinished();
      return erasures ? { erasures } : {};
    },
    upkeep: () => startSweeper(finisher.finish, logger, 'unfinished erasures'),
  };
}
