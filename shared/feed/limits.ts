import { KIB, MIB } from '../lib/units.ts';

/** The fixed bounds of the accounts' feeds: a part of LIMITS. */
export const FEED_LIMITS = {
  /** Of those who follow the events of an account. */
  feed: {
    /** Clients that follow, of all accounts; half of them of one. */
    followers: 500,
    /** The most events, and bytes of them as they are stored, that are handed to a follower at a time. */
    pageEvents: 250,
    pageBytes: 64 * KIB,
    /** Events whose texts are opened at a time. */
    openedEvents: 50,
    /** Events of the log, and bytes of them, that are kept for those who follow live. */
    recentEvents: 5_000,
    recentBytes: 8 * MIB,
    /** Events of the log that are read at a time. */
    batchEvents: 100,
    /** Events of the log that one who is behind looks through before it is another one's turn. */
    scannedEvents: 5_000,
    /** Reads of the log at a time, of those who are behind; half of them of one account. */
    catchUps: 8,
    /** How long a follower waits for its turn to read. */
    catchUpWaitMs: 30_000,
    /** How often a follower without events is told how far the log has gone on. */
    progressMs: 10_000,
    /** How long the log goes on being followed after the last follower has left. */
    lingerMs: 30_000,
    /** How long a page may wait for its first event. */
    waitSeconds: 60,
    /** Of a page that is answered: it ends with the event that makes it as large. */
    answerBytes: 256 * KIB,
    /** Between two looks whether the key of a follower still is valid. */
    keyCheckMs: 5_000,
  },
} as const;
