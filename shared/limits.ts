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
  },
  /** Of a run. */
  run: {
    /** Model calls that end in tool calls. */
    rounds: 8,
  },
  /** Of what is read of the log, and waits for its disk. */
  store: {
    /** Of the events that are handed to a follower at a time. */
    batchBytes: 16 * MIB,
    /** Of the events of a session that are read at a time. */
    pageBytes: 2 * MIB,
    /** Of the events that wait for the disk. */
    pendingBytes: 64 * MIB,
  },
  /** Of one arithmetic expression that a model asks for. */
  arithmetic: {
    expressionChars: 1_000,
    /** Parentheses, signs and powers within each other. */
    depth: 100,
    /** Of a numerator and of a denominator; a longer one is taken for its first 58 digits. */
    exactDigits: 3_000,
    /** Of a result that is written out. */
    resultDigits: 1_000,
    /** The largest number whose factorial is calculated. */
    factorial: 1_000,
    /** In units of about half a millisecond: what one inexact function, such as a sine, takes. */
    work: 40,
  },
  /** Of the model inside the process that needs no provider. */
  offlineModel: {
    bodyBytes: 32 * MIB,
    /** Of an input: where a wish for a function is looked for. */
    searchedChars: 2_000,
    /** Of an input that is quoted in the answer. */
    quotedChars: 4_000,
  },
  /** Of what is kept in memory to answer faster. */
  cache: {
    agentListBytes: 16 * MIB,
  },
} as const;
