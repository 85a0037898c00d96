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
    /** Runs that have no place yet, of all accounts; half of them of one. */
    waiting: 4_000,
    /** Runs that wait for another one of their session. */
    waitingOfSession: 100,
    /** Sessions that are read at a time, half of them of one account. */
    sessionReads: 8,
    /** Bytes of events that are asked for at a time when a session is read. */
    sessionPageBytes: 4 * MIB,
    /** How long the tokens of one text may take to be counted, the wait for others included. */
    countMs: 15_000,
  },
  /** Of what is kept in memory to answer faster. */
  cache: {
    agentListBytes: 16 * MIB,
    /** Characters of sessions that went on lately. */
    sessionChars: 8 * MIB,
    /** Turns whose tokens are known: some megabytes. */
    turnTokens: 20_000,
    /** Accounts whose limits are known. */
    accounts: 10_000,
    /** Keys whose requests are counted together with other processes. */
    keys: 10_000,
    /** Characters of agents that runs go on with while the database is away. */
    rowChars: 8 * MIB,
  },
} as const;
