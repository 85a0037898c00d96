import { KIB } from '../lib/units.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;

/** Fixed limits of webhooks, part of LIMITS. */
export const WEBHOOK_LIMITS = {
  webhooks: {
    /**
     * Webhooks per account.
     * @beyond 409 `webhook_limit_reached`
     */
    ofAccount: 20,
    /**
     * Enabled webhooks of all accounts. The newest ones beyond this limit wait.
     * @beyond the newest wait
     */
    enabled: 10_000,
    /**
     * Address of a webhook.
     * @beyond 400
     */
    urlCharacters: 2_048,
    /** Messages of one webhook in flight, each of a different session or agent. */
    ahead: 16,
    /** Messages of all webhooks in flight. Each account gets its share. */
    messages: 256,
    /**
     * Time from resolving the address to the response's status.
     * @beyond delivery repeated
     */
    answerMs: 10 * SECOND_MS,
    /** Bytes read of a response so that the connection can be reused. Their content is ignored. */
    answerBytes: 4 * KIB,
    /** Pauses between attempts while a receiver fails. */
    firstPauseMs: 500,
    longestPauseMs: 600 * SECOND_MS,
    /**
     * Longest `Retry-After`.
     * @beyond attempted then
     */
    retryAfterMs: HOUR_MS,
    /**
     * Time of failing in running processes.
     * @beyond disabled
     */
    failingMs: 24 * HOUR_MS,
    /** Recent attempts that are kept of each webhook. */
    attempts: 20,
    /** Recent attempts of all webhooks in the file of their progress, which is rewritten as a whole. */
    attemptsInFile: 20_000,
    /**
     * Test messages per account.
     * @beyond 429
     */
    testsPerSecond: 1,
    /**
     * Concurrent look-ups of new hosts. Each account gets its share.
     * @beyond waits, then 429/503
     */
    lookups: 16,
    lookupWaitMs: 5 * SECOND_MS,
    /** Test messages in flight. Each account gets its share. */
    tests: 16,
    /**
     * Interval between saves of the progress. Deliveries since the last save are repeated after a
     * crash.
     */
    keepMs: SECOND_MS,
  },
} as const;
