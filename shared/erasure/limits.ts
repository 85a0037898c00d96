export const ERASURE_LIMITS = {
  /** Of a sweep for sessions that are past the maximum of their account's retention. */
  retention: {
    /** Sessions that one sweep erases; the next sweep continues. */
    sessionsOfSweep: 10_000,
    /** Sessions that it reads at a time. */
    pageEntries: 500,
  },
  /** Of the erasure of an account. */
  erasure: {
    /** Parked streams whose owner it looks up: no row shows some of them. */
    parkedStreams: 10_000,
    /** Unfinished erasures that one pass examines. */
    openErasures: 1_000,
  },
} as const;
