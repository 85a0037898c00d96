/** Fixed limits of waits for the end of a turn, part of LIMITS. */
export const TURN_LIMITS = {
  /** Limits of waits for turns, and of runs that other requests may cancel. */
  turn: {
    /**
     * Longest wait of a request for the end of a turn (`Prefer: wait`), in seconds.
     * @beyond the wait is shortened
     */
    waitSeconds: 60,
    /**
     * Requests that wait for a turn because of `Prefer` or as a retry. One account may have half of
     * them.
     * @beyond 429 or 503 ([shares](#shares))
     */
    waiting: 2_000,
    /** Characters of a `Prefer` header that are parsed. */
    preferChars: 1_024,
    /**
     * Sessions whose turns a fork shares. A fork of a fork has two.
     * @beyond 400
     */
    origins: 16,
    /** Sessions with a signal still to be sent to other processes. */
    signals: 1_000,
    /** Sessions polled at a time for events of other processes. */
    looks: 16,
  },
} as const;
