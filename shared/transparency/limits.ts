import { KIB, MIB } from '../lib/units.ts';

/** The fixed bounds of the transparency log: a part of LIMITS. */
export const TRANSPARENCY_LIMITS = {
  /** Of notes and proofs that others hand in. */
  tlog: {
    noteBytes: MIB,
    /** Below one note. */
    signatures: 100,
    proofBytes: 2 * MIB,
  },
  /** Of a bundle that somebody hands in. */
  proof: {
    /** Of each of its files but the events. */
    fileBytes: 64 * KIB,
    /** Of one event. */
    lineBytes: 4 * MIB,
  },
  /** Of the transparency log where it is read without a key. */
  publicLog: {
    /** Of one address (of IPv6: a network), in each process. */
    requestsPerSecond: 500,
    /** Addresses that are counted apart. */
    addresses: 10_000,
  },
  /** Of a witness of the transparency log. */
  witness: {
    /** Witnesses that a file may name. */
    witnesses: 16,
    /** How long an answer may take, up to its last byte. */
    answerMs: 5_000,
    /** Of an answer. */
    answerBytes: 16 * KIB,
    /** How long a checkpoint waits to be published for witnesses that answered the last time. */
    publishMs: 2_000,
    /** Between two tries of a witness that can't cosign, at the most. */
    retryMs: 60_000,
    /** How long the newest checkpoint may have too few cosignatures before health says so. */
    shortMs: 60_000,
  },
} as const;
