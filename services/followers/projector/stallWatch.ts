import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import type { ActiveProjectionStore } from '../../../shared/ports/readModels.ts';

/**
 * How long an active projector may go without applying a batch or learning from the log that there is
 * none to apply.
 */
const STALL_MS = 5_000;
/** How long one batch may take: publishing a rebuild alone may block it for 15 s. */
const BATCH_LIMIT_MS = 20_000;
const POLL_MS = 1_000;
/** A longer pause between two polls means that this process itself was blocked. */
const PROCESS_BLOCKED_MS = 3_000;

interface WatchedProjector {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  store: ActiveProjectionStore;
  /** Called with each poll, with the end of the log if it is known. */
  onPoll: (endPosition: Position | undefined) => void;
  /** Called once, with half a sentence on the reason. */
  onStall: (reason: string) => void;
}

export interface StallWatch extends Disposable {
  /** The log and store that the projector must use, so that its work is observed. */
  log: Pick<EventLog, 'subscribe' | 'head'>;
  store: ActiveProjectionStore;
  /** Records that everything up to this position is applied. */
  onApplied(position: Position | undefined): void;
  /** Sets whether batches are expected, or only responses of the log, as during a rebuild. */
  expect(what: 'batches' | 'answers'): void;
}

/**
 * Detects an active projector that makes no progress. A subscription that hangs without an error, a
 * log whose end can't be read, and batches that can't be applied all count as stalls; a log without
 * new events, or one that refuses the checkpoint, does not.
 */
export function watchForStalls({ log, store, onPoll, onStall }: WatchedProjector): StallWatch {
  let expected: 'batches' | 'answers' = 'batches';
  let appliedPosition: Position | undefined;
  let endPosition: Position | undefined;
  let pendingQuery: Promise<void> | undefined;
  let applyingSince: number | undefined;
  let polledAt = performance.now();
  let progressAt = polledAt;
  let respondedAt = polledAt;

  const recordProgress = (): void => void (progressAt = performance.now());

  async function queryEnd(): Promise<void> {
    try {
      endPosition = await log.head();
      respondedAt = performance.now();
      if (
        expected === 'answers' ||
        endPosition === undefined ||
        endPosition <= (appliedPosition ?? '')
      )
        recordProgress();
    } catch {
      // The subscription reports why the log can't be read.
    } finally {
      pendingQuery = undefined;
    }
  }

  /** Half a sentence; undefined while the projector makes progress. */
  function stallReason(now: number): string | undefined {
    if (applyingSince !== undefined)
      return now - applyingSince > BATCH_LIMIT_MS
        ? `a batch could not be applied for ${BATCH_LIMIT_MS / 1000} s`
        : undefined;
    if (now - progressAt <= STALL_MS) return undefined;
    const logUnreadable = now - respondedAt > STALL_MS;
    return logUnreadable
      ? `the log could not be read for ${STALL_MS / 1000} s`
      : `nothing was applied for ${STALL_MS / 1000} s, although the log has new events`;
  }

  function checkForStall(): void {
    const reason = stallReason(performance.now());
    if (reason === undefined) return;
    clearInterval(pollTimer);
    onStall(reason);
  }

  function poll(): void {
    const now = performance.now();
    if (now - polledAt > PROCESS_BLOCKED_MS) recordProgress();
    polledAt = now;
    pendingQuery ??= queryEnd();
    onPoll(endPosition);
    // Responses that arrived while this process was busy are handled before the check.
    setImmediate(checkForStall);
  }
  const pollTimer = setInterval(poll, POLL_MS).unref();
  poll();

  return {
    log: {
      head: log.head,
      async *subscribe(options) {
        try {
          for await (const batch of log.subscribe(options)) {
            expected = 'batches';
            yield batch;
          }
        } catch (error) {
          // A refusal is a response of the log; the projection handles it.
          if (isTurnlogError(error) && !isTurnlogError(error, 'store_unavailable')) {
            expected = 'answers';
            recordProgress();
          }
          throw error;
        }
      },
    },
    store: {
      ...store,
      async apply(events, checkpoint) {
        applyingSince = performance.now();
        try {
          return await store.apply(events, checkpoint);
        } finally {
          applyingSince = undefined;
        }
      },
    },
    onApplied(position) {
      appliedPosition = position ?? appliedPosition;
      recordProgress();
    },
    expect(what) {
      expected = what;
      recordProgress();
    },
    [Symbol.dispose]: () => clearInterval(pollTimer),
  };
}
