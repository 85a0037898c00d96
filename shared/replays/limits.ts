import { KIB } from '../lib/units.ts';

const SECOND_MS = 1_000;

/** The fixed bounds of replays: a part of LIMITS. */
export const REPLAY_LIMITS = {
  replays: {
    /** Sessions of one replay. */
    sessions: 2_000,
    /** Replays of one account that run at a time. */
    running: 4,
    /** Of all accounts. The state of one of as many sessions as there may be is 0.8 MB. */
    runningOfAll: 100,
    /** Sessions that one replay runs at a time, at the most. */
    concurrency: 4,
    /** Turns that are replayed at a time, of all replays; the accounts take turns. */
    turns: 4,
    /** Beside runs of clients one turn begins in so long a time. */
    giveWayMs: 50,
    /** So long after clients last had one, turns begin as fast as they can. */
    quietMs: SECOND_MS,
    /** Of a session's events, as JSON, that are read at a time; at least one is. */
    pageBytes: 256 * KIB,
    /** Turns that are compared before that is recorded. */
    comparedAtOnce: 20,
    /** How long a comparison waits for those that are recorded with it. */
    comparedWithinMs: SECOND_MS,
    /** How often it is looked which replays run: a cancelled one ends then. */
    lookMs: 250,
    /** Between two tries of what a passing trouble keeps back. */
    firstPauseMs: 500,
    longestPauseMs: 60 * SECOND_MS,
    /** Tries of a turn that takes too long, or that others interrupt. */
    tries: 3,
    /** Checks of one replay, and all of them as JSON. */
    checks: 32,
    checksBytes: 64 * KIB,
    /** Of a text that an answer is compared with, and of what a judge goes by. */
    checkChars: 16 * KIB,
    /** Of a regular expression. */
    patternChars: 1_000,
    /** Turns of one answer: their texts are read, and compared where they differ. */
    pageTurns: 100,
    /** Of an output that is compared word by word; of longer ones it is said that they differ. */
    diffChars: 64 * KIB,
    /** How long that may take, and how many words may be other ones. */
    diffMs: SECOND_MS,
    diffEdits: 4_000,
    /** For the comparisons of others that come first. */
    diffWaitMs: 15 * SECOND_MS,
    /** Of the thread that compares. */
    diffHeapMb: 128,
    /** Of all comparisons of one answer. */
    pageDiffMs: 3 * SECOND_MS,
    /** How often it is looked how far a replay is that somebody follows. */
    followMs: SECOND_MS,
    /** Events of its stream that are read at a time for that. */
    followedEvents: 100,
  },
} as const;
