export const ERASURE_LIMITS = {
  /** Limits of a sweep for sessions past their account's maximum retention. */
  retention: {
    /** Sessions that one sweep erases; the next sweep continues. */
    sessionsOfSweep: 10_000,
    /** Sessions read at a time. */
    pageEntries: 500,
    /**
     * Due sessions erased at once.
     * @beyond [confirmation](operations.md#retention-and-legal-hold)
     */
    unconfirmedSessions: 100,
    /**
     * Sessions a day overdue erased at once.
     * @beyond [confirmation](operations.md#retention-and-legal-hold)
     */
    overdueSessions: 10,
    /** Sessions made from a session, directly or not, that are examined before its erasure. */
    dependents: 10_000,
  },
  /** Limits of the erasure of an account. */
  erasure: {
    /** Parked streams whose owner is looked up, because some have no row. */
    parkedStreams: 10_000,
    /** Unfinished erasures examined per pass. */
    openErasures: 1_000,
  },
} as const;
