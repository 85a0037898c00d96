import { KIB } from '../lib/units.ts';

/** Fixed limits of search, part of LIMITS. */
export const SEARCH_LIMITS = {
  /** Limits of the word index and of queries. */
  search: {
    /** Indexed characters of an input or output. Later text can't be found. */
    textCharacters: 64 * KIB,
    /** Characters per word. Longer words are compared only up to this length. */
    wordCharacters: 64,
    /**
     * Different words per turn. Further
     * words can't be found.
     */
    wordsOfTurn: 2_000,
    /** Characters of a query. */
    queryCharacters: 256,
    /** Different words of a query. */
    queryWords: 16,
    /**
     * Shortest indexed part of a compound (`id` of `getUserId`).
     * @beyond not found
     */
    partCharacters: 2,
    /**
     * Parts of compounds per turn, half per text.
     * @beyond not found
     */
    partsOfTurn: 1_000,
    /**
     * Least characters before `*` in a query.
     * @beyond 400
     */
    prefixCharacters: 3,
    /** Characters of a beginning that are compared. Those that follow are ignored. */
    longestPrefix: 8,
    /**
     * Beginnings of words per turn, short ones first.
     * @beyond not found
     */
    prefixesOfTurn: 6_000,
    /** Turns reported for a session that was found, starting with the first. */
    matches: 20,
    /**
     * Wait for the index.
     * @beyond `index.complete_until`; exports and replays 503
     */
    waitMs: 1_000,
    /** Recently changed sessions of an account whose turns a search looks up in the index. */
    changedSessions: 200,
    /**
     * Turns, and characters of their encrypted texts, indexed in one transaction, in about 20 ms. The
     * projection waits for it. Its last turn may exceed the limit.
     */
    turnsAtOnce: 128,
    charactersAtOnce: 32 * KIB,
    /** Accounts looked at together for turns to index out of order, and turns of each. */
    accountsAtOnce: 64,
    turnsOfAccount: 8,
    /** Turns not yet indexed that health counts. */
    countedTurns: 10_000,
    /**
     * Searches with a filter that leaves no more sessions, and turns in them, read these without
     * the index.
     */
    fewSessions: 2_500,
    turnsOfFew: 25_000,
    /** Index pages of 4 KB rewritten in one transaction to remove erased words. */
    pagesAtOnce: 16,
    /**
     * Minimum interval between removals. Erasures are batched, because each removal rewrites the
     * whole index. Erasures of a large part of it do not wait.
     */
    forgetEveryMs: 30_000,
  },
} as const;
