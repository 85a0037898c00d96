import { agentErasedError, originErasedError, sessionErasedError } from './errors.ts';
import { forgetState } from '../commandHandling/targetStream.ts';
import { NO_ACCOUNT, mapInSlices } from '../lib/concurrency/yieldToEventLoop.ts';
import { streamId, streamKind } from '../eventlog/streams.ts';
import type { Position } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { ErasureRow } from '../readModels/tables.ts';
import type { RunContext } from '../runs/context.ts';
import type { RunSubject } from '../runs/queueing/runsInFlight.ts';

type Erased = Pick<ErasureRow, 'stream' | 'account_id' | 'key_ids'>;
type Caches = Pick<RunContext, 'store' | 'runState' | 'cachedRows'>;

/** Ends the runs that use an erased stream with the matching error. */
function endRuns({ runsInFlight }: RunContext['runState'], stream: string): void {
  const id = streamId(stream);
  const matches = (field: keyof RunSubject) => (subject: RunSubject) => subject[field] === id;
  switch (streamKind(stream)) {
    case 'session':
      runsInFlight.interruptMatching(matches('session_id'), sessionErasedError());
      return runsInFlight.interruptMatching(
        ({ origins }) => origins?.includes(id) === true,
        originErasedError(),
      );
    case 'agent':
      return runsInFlight.interruptMatching(matches('agent_id'), agentErasedError());
    // An erased account: all its sessions are erased.
    default:
      return runsInFlight.interruptMatching(matches('account_id'), sessionErasedError());
  }
}

/**
 * Evicts an erased stream from this process's memory, and ends the runs that use it. The rows of
 * other agents and accounts stay cached: reading them again would cost every account.
 * Idempotent.
 */
export function evictErased(
  { store, runState, cachedRows }: Caches,
  { stream, key_ids }: Erased,
): void {
  store.keys.evict(stream, key_ids);
  endRuns(runState, stream);
  const id = streamId(stream);
  if (streamKind(stream) !== 'session') {
    forgetState(store, stream);
    return cachedRows.forget?.(stream);
  }
  runState.sessionCache.delete(id);
  runState.sessionCache.deleteGroup(id);
  runState.openTurnQueue.remove({ session_id: id });
}

/**
 * Evicts everything that may be erased from this process's caches. Runs and turns in the queue are only
 * ended by `evictErased`, since most of them use nothing erased.
 */
export function evictAll({ store, runState, cachedRows }: Caches): void {
  store.keys.evictAll();
  forgetState(store);
  runState.sessionCache.clear();
  cachedRows.forget?.();
}

/** Limit of erasures in one read. When more arrive between two polls, everything is evicted first. */
const MAX_ERASURES = 1_000;

interface PollerOptions {
  readModels: Pick<ReadModels, 'listErasures' | 'listErasuresAfter'>;
  forget: (erased: ErasureRow) => void;
  /** Called when the erasures since the last poll are unknown. */
  forgetAll: () => void;
}

/**
 * Finds the erasures of other replicas and of operators' commands in the read models. Call the
 * result about once a second: each call reports erasures since the previous one. The first call only
 * finds the newest erasure.
 */
export function createErasurePoller({
  readModels,
  forget,
  forgetAll,
}: PollerOptions): () => Promise<void> {
  let started = false;
  let newestSeen: Position | undefined;

  /** Reports the erasures after the newest seen, in pages, up to the oldest one that was read. */
  async function forgetEarlier(oldestRead: Position): Promise<void> {
    let after = newestSeen;
    while (after === undefined || after < oldestRead) {
      const page = await readModels.listErasuresAfter({ after, limit: MAX_ERASURES });
      if (page.length === 0) return;
      await mapInSlices(NO_ACCOUNT, page, forget);
      after = page.at(-1)!.position;
    }
  }

  return async () => {
    const limit = started ? MAX_ERASURES : 1;
    const rows = await readModels.listErasures({ downTo: started ? newestSeen : undefined, limit });
    const continues = rows.at(-1)?.position === newestSeen;
    // If the last seen erasure is missing, the read models show another log.
    if (started && !continues && (newestSeen !== undefined || rows.length === limit)) forgetAll();
    const unseen = started ? rows.filter(({ position }) => position !== newestSeen) : [];
    await mapInSlices(NO_ACCOUNT, unseen, forget);
    if (started && !continues && rows.length === limit) await forgetEarlier(rows.at(-1)!.position);
    started = true;
    newestSeen = rows[0]?.position ?? newestSeen;
  };
}
