import { KIB, MIB } from '../lib/units.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;

/** Fixed limits of webhooks, part of LIMITS. */
export const WEBHOOK_LIMITS = {
  webhooks: {
    /**
     * Webhooks per account, including disabled ones.
     * @beyond 409 `webhook_limit_reached`
     */
    ofAccount: 20,
    /**
     * Enabled webhooks of all accounts. The newest ones beyond this limit wait.
     * @beyond the newest ones wait
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
    messageBytes: 64 * MIB,
    /**
     * Time from resolving the address to the status line of the response.
     * @beyond the delivery failed and is repeated
     */
    answerMs: 10 * SECOND_MS,
    /** Bytes read of a response so that the connection can be reused. Their content is ignored. */
    answerBytes: 4 * KIB,
    /** Pauses between attempts while a receiver fails. */
    firstPauseMs: 500,
    longestPauseMs: 600 * SECOND_MS,
    /**
     * The longest `Retry-After` that is honored.
     * @beyond the delivery is tried then
     */
    retryAfterMs: HOUR_MS,
    /**
     * Time of failed attempts and pauses in running processes before a webhook is disabled.
     * @beyond the webhook is disabled
     */
    failingMs: 24 * HOUR_MS,
    /** Recent attempts that are kept of each webhook. */
    attempts: 20,
    /** Recent attempts of all webhooks in the file of their progress, which is rewritten as a whole. */
    attemptsInFile: 20_000,
    /**
     * Test messages per second of an account.
     * @beyond 429
     */
    testsPerSecond: 1,
    /**
     * Hosts of new addresses that are looked up at a time. Each account gets its share.
     * @beyond it waits, then 429 or 503 `overloaded`
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
