import { isErasure } from '../../eventlog/eventTypes.ts';
import { keysNamedBy } from '../../eventlog/encryption/protectedStore.ts';
import { LIMITS } from '../../limits.ts';
import type { EventLog, Position, StoredEvent } from '../../ports/eventStore.ts';
import type { KeyStore } from '../../ports/keyStore.ts';
import { judgeErasure, type JudgeContext, type JudgedErasure } from './judgeErasure.ts';
import { findErasuresWithKeys } from './restoredKeys.ts';

const BATCH = 500;

/** The progress through a log, and the erasures that it met. */
export interface ErasureProgress {
  events: number;
  erasures: number;
  position: Position | undefined;
}

interface Walk {
  log: Pick<EventLog, 'subscribe'>;
  after: Position | undefined;
  /** Stops after a batch. */
  signal: AbortSignal;
  onProgress: (progress: ErasureProgress) => void;
}

/**
 * Calls a function with the erasures of each batch of the log. Resolves with false when the signal
 * stopped it before the end of the log; the next call continues after the last position.
 */
async function walkErasures(
  { log, after, signal, onProgress }: Walk,
  visit: (erasures: StoredEvent[]) => Promise<void>,
): Promise<boolean> {
  let progress: ErasureProgress = { events: 0, erasures: 0, position: after };
  for await (const batch of log.subscribe({ after, batchSize: BATCH, signal })) {
    const erasures = batch.events.filter(({ type }) => isErasure(type));
    await visit(erasures);
    progress = {
      events: progress.events + batch.events.length,
      erasures: progress.erasures + erasures.length,
      position: batch.events.at(-1)?.position ?? progress.position,
    };
    onProgress(progress);
    if (batch.caughtUp) return true;
  }
  return false;
}

/**
 * Finds the erasures of a log whose keys exist, and calls a function with each. Resolves and throws
 * as the key store and the log do; with false when it was stopped.
 */
export const findRestoredKeys = (
  options: Walk & { keys: Pick<KeyStore, 'find' | 'listErasures'> },
  onFound: (found: { stream: string; key_ids: string[] }) => void,
): Promise<boolean> =>
  walkErasures(options, async (erasures) => {
    const named = erasures.map((event) => ({ stream: event.stream, key_ids: keysNamedBy(event) }));
    (await findErasuresWithKeys(options.keys, named)).forEach(onFound);
  });

const UNFINISHED = 'its erasure is not finished: a running service finishes it';

/** An erasure that is not finished is left to the service, which also erases its replays. */
function leaveUnfinished(judged: JudgedErasure): JudgedErasure {
  const unfinished = judged.destroy.map((key_id) => ({ key_id, reason: UNFINISHED }));
  return { ...judged, destroy: [], keep: [...unfinished, ...judged.keep] };
}

/**
 * Judges every erasure of a log after the key store was restored from a backup, and calls a function
 * with those that have keys left. With `apply`, first destroys the keys that may be destroyed.
 * Resolves with false when it was stopped.
 */
export const reconcileErasures = (
  options: Walk & { context: JudgeContext; apply: boolean },
  onJudged: (judged: JudgedErasure) => void,
): Promise<boolean> =>
  walkErasures(options, async (erasures) => {
    const { context, apply } = options;
    for (const erasure of erasures) {
      const verdict = await judgeErasure(context, erasure);
      if (!verdict) continue;
      const open = await context.store.keys.listErasures(LIMITS.erasure.openErasures);
      const isOpen = open.some(({ stream }) => stream === verdict.stream);
      const judged = isOpen ? leaveUnfinished(verdict) : verdict;
      if (apply && judged.destroy.length > 0)
        await context.store.keys.endErasure(judged.stream, judged.destroy);
      onJudged(judged);
    }
  });
