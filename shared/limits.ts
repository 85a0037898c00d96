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
    /** So that a text within its limits comes in however a common client escapes it. */
    bodyBytes: 2 * MIB,
    /** Brackets and commas of a body: reading a million of them takes a third of a second. */
    bodyValues: 20_000,
    /** A text as JSON, as an event holds it: an append is 1 MiB at the most (MAX_APPEND_BYTES). */
    jsonTextBytes: 960 * KIB,
    /** From the first byte of a request to its last header. */
    headersMs: 10_000,
    /** From the first byte of a request to its last. */
    requestMs: 30_000,
    /** Requests of a connection that wait for their answers. */
    pipelined: 100,
    /** How long a client may go on sending that was answered before it had sent all. */
    lingerMs: 1_000,
    /** Bodies in progress, from the first byte to the answer: this part of the heap, at least 8 MiB. */
    bodiesOfHeap: 1 / 8,
    bodiesBytesAtLeast: 8 * MIB,
    /** What one account may have of that. */
    bodiesOfAccount: 1 / 2,
    /** Problems that a 400 lists: nobody reads more, and a hostile body can have a million. */
    details: 20,
    /** Entries that a page is asked for. */
    pageEntries: 1_000,
  },
  /** Of logins that failed. */
  logins: {
    /** Addresses (of IPv6: networks) that are told apart. */
    addresses: 10_000,
    /** Answers that are held back at a time, for all addresses and for one. */
    held: 256,
    heldOfAddress: 20,
    /** Between two lines of the log about one address. */
    lineEveryMs: 10_000,
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
