import { KIB, MIB } from '../lib/units.ts';

/** Fixed limits of stores and their clients: a part of LIMITS. */
export const STORE_LIMITS = {
  /** Events being read from the log or waiting for its disk. */
  store: {
    /** Events delivered to a follower at a time. */
    batchBytes: 2 * MIB,
    /** Events of a session read at a time. */
    pageBytes: 512 * KIB,
    /**
     * Events waiting for the disk.
     * @beyond 503; nothing written
     */
    pendingBytes: 64 * MIB,
    /** Of those, the bytes in the writer thread, which holds them two more times. */
    writingBytes: 2 * MIB,
  },
  /** Caches. */
  cache: {
    agentListBytes: 8 * MIB,
    /** Characters of recently active sessions. */
    sessionChars: 8 * MIB,
    /** Sessions whose compaction failed. */
    failedCompactions: 10_000,
    /** Turns with a known token count: some megabytes. */
    turnTokens: 20_000,
    /** Accounts with loaded limits. */
    accounts: 10_000,
    /** API keys whose requests are counted across processes. */
    keys: 10_000,
    /** Text keys: some megabytes. */
    textKeys: 20_000,
    /** Characters of agents, or of keys. Runs use them while the database is unavailable. */
    rowChars: 8 * MIB,
    /** Longer lists are not cached. */
    agentListEntryBytes: 2 * MIB,
  },
} as const;
