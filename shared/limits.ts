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
  /** Of a text that a client sends. */
  text: {
    /** Of agents, accounts and keys. */
    nameCharacters: 256,
    /** Of what a request names: a model, a tool, a component, a session. */
    referenceCharacters: 256,
    instructionBytes: 256 * KIB,
    inputBytes: 512 * KIB,
  },
  /** Of a run. */
  run: {
    /** Model calls that end in tool calls. */
    rounds: 8,
  },
  /** Of what is kept in memory to answer faster. */
  cache: {
    agentListBytes: 16 * MIB,
  },
} as const;
