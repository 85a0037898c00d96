/** Fixed limits of the quotas, part of LIMITS. */
export const STORAGE_LIMITS = {
  storage: {
    /** How long the counts of an account are used before they are read again. */
    freshMs: 500,
    /** Groups of appends that an account's counts do not include yet; more are merged. */
    pendingGroups: 64,
  },
} as const;
