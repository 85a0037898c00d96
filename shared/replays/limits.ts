import { KIB, MIB } from '../lib/units.ts';

const SECOND_MS = 1_000;

/** Fixed limits of replays, part of LIMITS. */
export const REPLAY_LIMITS = {
  replays: {
    /** Sessions per replay. */
    sessions: 2_000,
    /** Tokens that a replay may use where its request states no budget. */
    defaultBudgetTokens: 1_000_000,
    /**
     * Concurrent replays per account.
     * @beyond 409 `replay_limit_reached`
     */
    running: 4,
    /**
     * Concurrent replays of all accounts. The state of the largest replay takes 0.8 MB.
     * @beyond 503 `overloaded`
     */
    runningOfAll: 100,
    /** Concurrent requests that start a replay, then 503. Each account's run one after another. */
    starts: 128,
    /**
     * Concurrent starts per account.
     * @beyond 429
     */
    startsOfAccount: 16,
    /**
     * Replays of replays.
     * @beyond failed
     */
    depth: 16,
    /** Concurrent sessions per replay. */
    concurrency: 4,
    /**
     * Concurrent turns; 4 per account.
     * @beyond waits
     */
    turns: 5,
    /** Memory of a session that is replayed: two turns and the events read ahead. */
    sessionBytes: 3 * MIB,
    /** Pause between turns while clients have runs. */
    turnPauseMs: 50,
    /** Time after the last client run until turns start without this pause. */
    quietMs: SECOND_MS,
    /** Bytes of a session's events, as JSON, read at a time; at least one event. */
    pageBytes: 256 * KIB,
    /** Comparisons recorded together. */
    comparedAtOnce: 20,
    /** How long a comparison waits for others to be recorded with it. */
    comparedWithinMs: SECOND_MS,
    /** Poll interval for running replays, which also detects cancellations. */
    lookMs: 250,
    /** Delays between retries of a transient failure. */
    firstPauseMs: 500,
    longestPauseMs: 60 * SECOND_MS,
    /**
     * Attempts of timed-out or interrupted turns.
     * @beyond failed
     */
    tries: 3,
    /** Checks per replay. */
    checks: 32,
    /**
     * Checks per replay as JSON.
     * @beyond 400
     */
    checksBytes: 64 * KIB,
    /** Characters of a text to compare an answer with, and of criteria for a judge. */
    checkChars: 16 * KIB,
    /**
     * Length of a regular expression.
     * @beyond 400
     */
    patternChars: 1_000,
    /** Turns per response. Their texts are read, and compared if they differ. */
    pageTurns: 100,
    /**
     * Characters of a compared output. Longer outputs are only reported as different.
     * @beyond `too_long`
     */
    diffChars: 64 * KIB,
    /**
     * Time of a comparison (4,000 different words).
     * @beyond `too_different`
     */
    diffMs: SECOND_MS,
    diffEdits: 4_000,
    /**
     * Wait for earlier comparisons.
     * @beyond 503 `overloaded`
     */
    diffWaitMs: 15 * SECOND_MS,
    /** Heap of the comparing thread. */
    diffHeapMb: 48,
    /** Time for all comparisons of one response. */
    pageDiffMs: 3 * SECOND_MS,
    /** Poll interval for a replay that clients follow. */
    followMs: SECOND_MS,
    /** Events of the replay's stream read at a time for followers. */
    followedEvents: 100,
  },
} as const;
