import { readReplaysAt } from '../../../shared/erasure/eraseWithReplays.ts';
import { createErasureFinisher } from '../../../shared/erasure/finishErasures.ts';
import { createErasurePoller, evictErased } from '../../../shared/erasure/evictErased.ts';
import type { CommandContext } from '../../../shared/commandHandling/context.ts';
import type { ErasureContext } from '../../../shared/erasure/retention/requireErasable.ts';
import type { RunContext } from '../../../shared/runs/context.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type { KeyStore } from '../../../shared/ports/keyStore.ts';
import { describeRestoredKeys } from '../../../shared/erasure/reconcileErasures.ts';
import { agentListCache } from '../../api/agents/listCache.ts';
import { retryUntilStoreAvailable } from '../startup/retryUntilStoreAvailable.ts';
import { startPolling, startSweeper } from './periodicTask.ts';
import type { ProcessPart } from '../processParts.ts';

/** Lets go of what this process remembers of what others erase: within about a second. */
export function erasureNoticePart(api: RunContext): ProcessPart {
  const { readModels, runState, cachedRows, logger } = api;
  const lists = agentListCache(readModels);
  const look = createErasurePoller({
    readModels,
    forget(erased) {
      evictErased(api, erased);
      lists.deleteAccount(erased.account_id);
    },
    forgetAll() {
      runState.sessionCache.clear();
      cachedRows.forget?.();
      lists.clear();
    },
  });
  return {
    prepare: (signal) => retryUntilStoreAvailable(look, logger, signal),
    upkeep: () => startPolling(look),
  };
}

/** Looks once, and on as long as keys are back: nobody restores them under a running service. */
export function restoredKeysPart(
  { readModels, logger }: Pick<CommandContext, 'readModels' | 'logger'>,
  keys: KeyStore,
): ProcessPart {
  let reason: string | undefined;
  async function look(): Promise<void> {
    reason = await describeRestoredKeys({ keys, readModels });
  }
  return {
    async prepare(signal) {
      await retryUntilStoreAvailable(look, logger, signal);
      if (reason !== undefined) logger.error(reason);
    },
    health: async () => (reason === undefined ? {} : { text_keys: { reason } }),
    upkeep: () => startPolling(async () => (reason === undefined ? undefined : look())),
  };
}

type UnfinishedErasuresContext = ErasureContext & Pick<CommandContext, 'readModels' | 'logger'>;

interface UnfinishedErasuresOptions {
  /** For what this process remembers, where it does. */
  api: RunContext | undefined;
  /** True where no other process can be at work on what was begun before this one started. */
  alone: boolean;
  visibilityWaitMs: number;
}

/** Goes on with erasures that a process has left, or that had to wait for a store. */
export function unfinishedErasuresPart(
  context: UnfinishedErasuresContext,
  { api, alone, visibilityWaitMs }: UnfinishedErasuresOptions,
): ProcessPart {
  const { readModels, logger } = context;
  const finisher = createErasureFinisher({
    ...context,
    async readModelsAt(position: Position) {
      await readModels.untilShown(position, visibilityWaitMs);
      return readModels;
    },
    replaysAt: readReplaysAt(readModels, visibilityWaitMs),
    onErased: (erased) => api && evictErased(api, erased),
  });
  let first = alone;
  async function finish(signal: AbortSignal): Promise<void> {
    await finisher.finish(signal, first ? 0 : undefined);
    first = false;
  }
  return {
    async health() {
      const erasures = finisher.unfinished();
      return erasures ? { erasures } : {};
    },
    upkeep: () => startSweeper(finish, logger, 'erasures that were begun'),
  };
}
