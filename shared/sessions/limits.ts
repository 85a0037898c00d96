/** Fixed limits of sessions and of waits for the end of a turn, part of LIMITS. */
export const SESSION_LIMITS = {
  /** Limits of waits for turns, and of runs that other requests may cancel. */
  turn: {
    /** Longest `Prefer: wait`, in seconds. */
    waitSeconds: 60,
    /**
     * Requests waiting for a turn. One account may have half of
     * them.
     * @beyond 429/503
     */
    waiting: 2_000,
    /** Characters of a `Prefer` header that are parsed. */
    preferChars: 1_024,
    /** Sessions whose turns a fork shares. A fork of a fork has two. */
    origins: 16,
    /** Sessions with a signal still to be sent to other processes. */
    signals: 1_000,
    /** Sessions polled at a time for events of other processes. */
    looks: 16,
  },
  /** Limits of each step of a list of sessions that follows an index, in entries of the index. */
  sessionList: {
    /** Entries of an index that is read as a whole rather than in slices. */
    narrowIndex: 1_000,
    /** The first slice is read at once, and later ones where they do not occupy the event loop. */
    firstSlice: 256,
    laterSlice: 4_096,
    /** Time limits of one slice, and of its wait for those of others. */
    answerMs: 5_000,
    waitMs: 10_000,
    /** Heap of a thread that reads slices, in MB. */
    heapMb: 32,
  },
} as const;
