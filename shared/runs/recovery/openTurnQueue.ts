/**
 * More are not kept: the oldest are left to the next run of their sessions, the next start, or the
 * sweep by deadline.
 */
const MAX_SESSIONS = 10_000;
/**
 * A server may write an append long after it failed to answer. A turn whose beginning is not there
 * yet is looked for again after these pauses, in milliseconds, and then forgotten.
 */
const RECHECK_DELAYS_MS = [1_000, 2_000, 4_000, 8_000, 15_000];
/** After a look that came to nothing because the store was away, or the session busy. */
const RETRY_DELAY_MS = 250;
/** A call sent before the store fell silent may never be answered: a short wait will do. */
const FIRST_TIMEOUT_MS = 1_000;
const MAX_TIMEOUT_MS = 16_000;

/** A session with a turn that may be open in the store although nobody runs it. */
export interface QueuedTurn {
  readonly session_id: string;
  /**
   * Where the event stands, if it was written, of whose append nobody knows the outcome: beyond it
   * nothing can come late.
   */
  readonly revision: number;
  /**
   * How long a look at it may take while the store is not known to be in trouble, in milliseconds.
   */
  readonly timeoutMs: number;
}

/**
 * The sessions whose turns this instance had to leave open, because the store was away as they
 * began or ended.
 */
export interface OpenTurnQueue {
  readonly size: number;
  add(sessionId: string, revision: number): void;
  /**
   * The session whose turn it is to be looked at, which nobody else gets until it is given back;
   * undefined when none is due.
   */
  take(): QueuedTurn | undefined;
  /** There is nothing left to close. */
  remove(turn: Pick<QueuedTurn, 'session_id'>): void;
  /**
   * It could not be looked at; it will be due again in a moment. `tookTooLong` doubles the patience
   * with it.
   */
  retry(turn: QueuedTurn, tookTooLong?: boolean): void;
  /**
   * What may still be written was not there. Due again after a while, or forgotten after the last
   * look.
   */
  recheck(turn: QueuedTurn): void;
}

/** Changed in place: who has taken it sees at once what a run has added meanwhile. */
interface Entry {
  readonly session_id: string;
  revision: number;
  timeoutMs: number;
  looks: number;
  dueAt: number;
  taken: boolean;
}

/** `now` in milliseconds of a monotonic clock. */
export function createOpenTurnQueue(now: () => number = () => performance.now()): OpenTurnQueue {
  const entries = new Map<string, Entry>();

  /** To the end of the line, so that a session which can't be closed keeps no other back. */
  function giveBack({ session_id }: QueuedTurn, afterMs: number): void {
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
      const known = entries.get(session_id);
      const [oldest] = entries.keys();
      if (!known && entries.size >= MAX_SESSIONS && oldest !== undefined) entries.delete(oldest);
      const entry = known ?? { session_id, revision, timeoutMs: FIRST_TIMEOUT_MS, taken: false };
      entries.set(
        session_id,
        Object.assign(entry, {
          revision: Math.max(revision, entry.revision),
          looks: 0,
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
      giveBack(turn, RETRY_DELAY_MS);
    },
    recheck(turn) {
      const entry = entries.get(turn.session_id);
      const pause = RECHECK_DELAYS_MS[entry?.looks ?? 0];
      if (entry && pause !== undefined) {
        entry.looks += 1;
        giveBack(turn, pause);
      } else {
        entries.delete(turn.session_id);
      }
    },
  };
}
