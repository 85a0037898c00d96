import { KIB, MIB } from '../lib/units.ts';

/** Fixed limits of account feeds, part of LIMITS. */
export const FEED_LIMITS = {
  /** Limits for clients that follow the events of an account. */
  feed: {
    /**
     * Concurrent followers of all accounts. One account may have half of them.
     * @beyond 429/503
     */
    followers: 500,
    /**
     * Maximum events, and bytes of stored events, per page of a follower. A larger event gets a page to
     * itself.
     */
    pageEvents: 250,
    pageBytes: 64 * KIB,
    /**
     * Memory reserved per stored byte of a page: decrypted and as JSON with two bytes per character, and
     * as sent.
     */
    memoryPerByte: 5,
    /** Events decrypted at a time. */
    openedEvents: 50,
    /** Events of the log, and their bytes, kept in memory for live followers. */
    recentEvents: 5_000,
    recentBytes: 8 * MIB,
    /** Events read from the log at a time. */
    batchEvents: 100,
    /** Events scanned for a follower that is behind before the next follower's turn. */
    scannedEvents: 5_000,
    /**
     * Concurrent reads of the log for followers that are behind. One account may have half of them.
     */
    catchUps: 8,
    /**
     * Wait of a follower for a permit.
     * @beyond 429/503
     */
    catchUpWaitMs: 30_000,
    /** Interval at which a follower without events receives the position reached in the log. */
    progressMs: 10_000,
    /** How long the log is still followed after the last follower has left. */
    lingerMs: 30_000,
    /**
     * Longest `wait` of a page.
     * @beyond 400
     */
    waitSeconds: 60,
    /** Size of a page. The page ends with the event that reaches it. */
    answerBytes: 256 * KIB,
    /**
     * Checks of a follower's key.
     * @beyond stream ends, or 401
     */
    keyCheckMs: 1_000,
  },
} as const;
