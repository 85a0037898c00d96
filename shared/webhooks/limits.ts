import { KIB, MIB } from '../lib/units.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;

/** The fixed bounds of webhooks: a part of LIMITS. */
export const WEBHOOK_LIMITS = {
  webhooks: {
    /** Of one account, disabled ones included. */
    ofAccount: 20,
    /** Of all accounts that events are sent to; the newest beyond it wait. */
    enabled: 10_000,
    urlCharacters: 2_048,
    /** Messages of one webhook on their way, each of another session or agent. */
    ahead: 16,
    /** The same of all webhooks: an account has its share. */
    messages: 256,
    messageBytes: 64 * MIB,
    /** From the first look at the address to the status of the answer. */
    answerMs: 10 * SECOND_MS,
    /** What is read of an answer, for the connection's sake; nobody looks at it. */
    answerBytes: 4 * KIB,
    /** Between two tries of a receiver that fails. */
    firstPauseMs: 500,
    longestPauseMs: 600 * SECOND_MS,
    /** The longest wait that a receiver may ask for. */
    retryAfterMs: HOUR_MS,
    /** Tries without a success before a webhook is disabled: the time that this process waited and tried. */
    failingMs: 24 * HOUR_MS,
    /** How long progress waits to be kept: what a crash forgets of it is sent again. */
    keepMs: SECOND_MS,
  },
} as const;
