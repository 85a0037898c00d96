/** Fixed limits of the quotas, part of LIMITS. */
export const STORAGE_LIMITS = {
  storage: {
    /** How long the counts of an account are used before they are read again. */
    freshMs: 500,
    /** Appends that an account's counts do not include yet; more are merged. */
    pendingAppends: 1_000,
  },
} as const;
