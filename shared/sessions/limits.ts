/** The fixed bounds of waits for the end of a turn: a part of LIMITS. */
export const TURN_LIMITS = {
  /** Of turns whose end is waited for, and of runs that others may cancel. */
  turn: {
    /** How long one request waits for the end of a turn (`Prefer: wait`), in seconds. */
    waitSeconds: 60,
    /** Requests that wait for a turn, by `Prefer` or as one sent again; half of them of one account. */
    waiting: 2_000,
    /** Characters of a `Prefer` header that are looked at. */
    preferChars: 1_024,
    /** Sessions that a fork shares turns of: a fork of a fork has two. */
    origins: 16,
    /** Sessions of which other processes are still to be told. */
    signals: 1_000,
    /** Sessions whose end is read from the log at a time, to see what others have done. */
    looks: 16,
  },
} as const;
