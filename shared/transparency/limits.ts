import { KIB, MIB } from '../lib/units.ts';

/** Fixed limits of the transparency log, part of LIMITS. */
export const TRANSPARENCY_LIMITS = {
  /** For notes and proofs supplied by others. */
  tlog: {
    noteBytes: MIB,
    /** Signature lines per note. */
    signatures: 100,
    proofBytes: 2 * MIB,
  },
  /** For a bundle to verify. */
  proof: {
    /** Each file of a bundle except `events.jsonl`. */
    fileBytes: 64 * KIB,
    /** One event of a bundle. */
    lineBytes: 4 * MIB,
    /** The receipt of an erasure, whose event has at most 1 MiB. */
    receiptBytes: 4 * MIB,
  },
  /** For reads of the transparency log without an API key. */
  publicLog: {
    /**
     * Requests without a key, per address (IPv6: network) and process.
     * @beyond 429
     */
    requestsPerSecond: 500,
    /** Addresses with a separate counter. */
    addresses: 10_000,
  },
  /** For checkpoints of the transparency log that are kept elsewhere. */
  keptCheckpoints: {
    /** Files in one folder. */
    files: 1_000,
    /** Size of a file or of a response. */
    fileBytes: 64 * KIB,
    /** Time limit for a complete response. */
    answerMs: 2_000,
  },
  /** For witnesses of the transparency log. */
  witness: {
    /** Entries in the witnesses file. */
    witnesses: 16,
    /** Time limit for a complete response. */
    answerMs: 5_000,
    /** Time limit for a complete response while a start or a verification waits for it. */
    startMs: 2_000,
    /** Size of a response. */
    answerBytes: 16 * KIB,
    /** How long publishing a checkpoint waits for the witnesses that answered last time. */
    publishMs: 2_000,
    /** Maximum delay between requests to a witness that cannot cosign. */
    retryMs: 60_000,
    /** How long the newest checkpoint may lack cosignatures before health reports it. */
    shortMs: 60_000,
  },
} as const;
