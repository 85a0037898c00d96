/**
 * Above this limit, the oldest sessions are dropped. Their turns are closed by the session's next
 * run, the next start of the process, or the sweep by deadline.
 */
const MAX_SESSIONS = 10_000;
/**
 * A server may write an append long after it failed to respond. A turn whose start is missing is
 * rechecked after these delays (in milliseconds) and then dropped.
 */
const RECHECK_DELAYS_MS = [1_000, 2_000, 4_000, 8_000, 15_000];
/** Delay after an attempt that failed because the store was unavailable or the session busy. */
const RETRY_DELAY_MS = 250;
/** Short, because a call sent before an outage may never get a response. */
const FIRST_TIMEOUT_MS = 1_000;
const MAX_TIMEOUT_MS = 16_000;

/** A session with a turn that may be open in the store without a run. */
export interface QueuedTurn {
  readonly session_id: string;
  /**
   * Revision that the event with an unknown append outcome would have. Above it, no late append is
   * possible.
   */
  readonly revision: number;
  /** Time limit of an attempt while the store seems available, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Sessions with turns that this instance had to leave open, because the store was unavailable when
 * they started or ended.
 */
export interface OpenTurnQueue {
  readonly size: number;
  add(sessionId: string, revision: number): void;
  /** Takes the next session that is due until it is returned; undefined if none is due. */
  take(): QueuedTurn | undefined;
  /** Removes a session without an open turn. */
  remove(turn: Pick<QueuedTurn, 'session_id'>): void;
  /**
   * After a failed attempt, makes the session due again soon. `tookTooLong` doubles its time limit.
   */
  retry(turn: QueuedTurn, tookTooLong?: boolean): void;
  /**
   * An append may still be written. The session is due again after a delay, or dropped after the
   * last recheck.
   */
  recheck(turn: QueuedTurn): void;
}

/** Updated in place, so that a running attempt sees changes that a run makes in the meantime. */
interface Entry {
  readonly session_id: string;
  revision: number;
  timeoutMs: number;
  rechecks: number;
  dueAt: number;
  taken: boolean;
}

/** `now` returns milliseconds of a monotonic clock. */
export function createOpenTurnQueue(now: () => number = () => performance.now()): OpenTurnQueue {
  const entries = new Map<string, Entry>();

  /** Moves a session to the end of the queue, so that it does not block others. */
  function requeue({ session_id }: QueuedTurn, afterMs: number): void {
    const entry = entries.get(session_id);
    if (!entry) return;
    entry.taken = false;
    entry.dueAt = now() + afterMs;
    entries.delete(session_id);
    entries.set(session_id, entry);
  }

  return {
    get size() {
      return entries.size;
    },
    add(session_id, revision) {
      const queued = entries.get(session_id);
      const [oldest] = entries.keys();
      if (!queued && entries.size >= MAX_SESSIONS && oldest !== undefined) entries.delete(oldest);
      const entry = queued ?? { session_id, revision, timeoutMs: FIRST_TIMEOUT_MS, taken: false };
      entries.set(
        session_id,
        Object.assign(entry, {
          revision: Math.max(revision, entry.revision),
          rechecks: 0,
          dueAt: now(),
        }),
      );
    },
    take() {
      const at = now();
      for (const entry of entries.values()) {
        if (entry.taken || entry.dueAt > at) continue;
        entry.taken = true;
        return entry;
      }
      return undefined;
    },
    remove: ({ session_id }) => void entries.delete(session_id),
    retry(turn, tookTooLong = false) {
      const entry = entries.get(turn.session_id);
      if (entry && tookTooLong) entry.timeoutMs = Math.min(MAX_TIMEOUT_MS, entry.timeoutMs * 2);
      requeue(turn, RETRY_DELAY_MS);
    },
    recheck(turn) {
      const entry = entries.get(turn.session_id);
      const delayMs = RECHECK_DELAYS_MS[entry?.rechecks ?? 0];
      if (entry && delayMs !== undefined) {
        entry.rechecks += 1;
        requeue(turn, delayMs);
      } else {
        entries.delete(turn.session_id);
      }
    },
  };
}
