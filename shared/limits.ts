const KIB = 1_024;
const MIB = 1_024 * KIB;

/**
 * Every fixed bound on what a client, a tenant, a model or a provider can make grow, in one place.
 * Those that an operator sets are options (shared/config/). docs/limits.md says what happens beyond
 * each; a test compares the two.
 */
export const LIMITS = {
  /** Of a request. */
  http: {
    bodyBytes: MIB,
    /** Problems that a 400 lists: nobody reads more, and a hostile body can have a million. */
    details: 20,
    /** Entries that a page is asked for. */
    pageEntries: 1_000,
    /** Of a page: it ends before the entry that would go beyond; a larger entry is alone on one. */
    pageBytes: MIB,
    /** What a list that is answered whole reads at a time. */
    batchBytes: 256 * KIB,
    /** The part of the heap's limit that answers may hold until their clients have taken them. */
    answersOfHeap: 0.125,
    /** What a compressor of an answer holds. */
    compressorBytes: MIB,
    /** An answer up to this size waits for no room: the connection holds it. */
    smallAnswerBytes: 16 * KIB,
    /** Answers of one account that wait until there is room for them. */
    answersWaiting: 1_000,
    /** How long an answer waits for room. */
    answerWaitMs: 10_000,
    /** For how long a client may take nothing of its answer. */
    stalledReaderMs: 20_000,
    /** The same while other answers wait for room. */
    stalledReaderInTheWayMs: 5_000,
  },
  /** Of what health tells. */
  health: {
    /** Parked or damaged streams that are listed; the others are counted. */
    streams: 100,
  },
  /** Of a run. */
  run: {
    /** Model calls that end in tool calls. */
    rounds: 8,
  },
  /** Of what is kept in memory to answer faster. */
  cache: {
    agentListBytes: 16 * MIB,
    /** A longer list is read anew each time. */
    agentListEntryBytes: 2 * MIB,
  },
} as const;
