import { KIB } from '../lib/units.ts';

const SECOND_MS = 1_000;

/** The fixed limits of replays: a part of LIMITS. */
export const REPLAY_LIMITS = {
  replays: {
    /** Sessions of one replay. */
    sessions: 2_000,
    /** Concurrent replays of one account. */
    running: 4,
    /** Of all accounts. The state of the largest replay is 0.8 MB. */
    runningOfAll: 100,
    /** Concurrent sessions of one replay. */
    concurrency: 4,
    /** Concurrent turns of all replays; accounts take turns. */
    turns: 4,
    /** Interval between turns while clients have runs. */
    giveWayMs: 50,
    /** Time after the last run of a client until turns start without this interval. */
    quietMs: SECOND_MS,
    /** Events of a session read at a time, as JSON; at least one. */
    pageBytes: 256 * KIB,
    /** Comparisons recorded together. */
    comparedAtOnce: 20,
    /** How long a comparison waits for others to be recorded with it. */
    comparedWithinMs: SECOND_MS,
    /** Poll interval for running replays: a cancelled one ends then. */
    lookMs: 250,
    /** Delays between retries of a transient failure. */
    firstPauseMs: 500,
    longestPauseMs: 60 * SECOND_MS,
    /** Attempts of a turn that takes too long or is interrupted. */
    tries: 3,
    /** Checks of one replay, and all of them as JSON. */
    checks: 32,
    checksBytes: 64 * KIB,
    /** Of a text that an answer is compared with, and of the criteria of a judge. */
    checkChars: 16 * KIB,
    /** Of a regular expression. */
    patternChars: 1_000,
    /** Turns of one response: their texts are read, and compared if they differ. */
    pageTurns: 100,
    /** Of an output that is compared word by word; longer ones are only reported as different. */
    diffChars: 64 * KIB,
    /** Limits of a comparison: its time, and the number of different words. */
    diffMs: SECOND_MS,
    diffEdits: 4_000,
    /** The longest wait for earlier comparisons. */
    diffWaitMs: 15 * SECOND_MS,
    /** Of the comparing thread. */
    diffHeapMb: 128,
    /** Of all comparisons of one response. */
    pageDiffMs: 3 * SECOND_MS,
    /** Poll interval for a replay that clients follow. */
    followMs: SECOND_MS,
    /** Events of its stream read at a time for that. */
    followedEvents: 100,
  },
} as const;
