import { MIB } from '../lib/units.ts';

/** The fixed bounds of stores and what works on them: a part of LIMITS. */
export const STORE_LIMITS = {
  /** Of what is read of the log, and waits for its disk. */
  store: {
    /** Of the events that are handed to a follower at a time. */
    batchBytes: 2 * MIB,
    /** Of the events of a session that are read at a time. */
    pageBytes: 2 * MIB,
    /** Of the events that wait for the disk. */
    pendingBytes: 64 * MIB,
    /** Of those, what is with the thread that writes: it has them a second and a third time. */
    writingBytes: 2 * MIB,
  },
  /** Of what is kept in memory to answer faster. */
  cache: {
    agentListBytes: 8 * MIB,
    /** Characters of sessions that went on lately. */
    sessionChars: 8 * MIB,
    /** Sessions whose older turns could not be summed up. */
    failedCompactions: 10_000,
    /** Turns whose tokens are known: some megabytes. */
    turnTokens: 20_000,
    /** Accounts whose limits are known. */
    accounts: 10_000,
    /** Keys whose requests are counted together with other processes. */
    keys: 10_000,
    /** Keys of texts: some megabytes. */
    textKeys: 20_000,
    /** Characters of agents, or of keys, that are remembered; runs go on with them without a database. */
    rowChars: 8 * MIB,
    /** A longer list is read anew each time. */
    agentListEntryBytes: 2 * MIB,
  },
} as const;
