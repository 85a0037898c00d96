/** Fixed limits of accounts and API keys, part of LIMITS. */
export const KEY_LIMITS = {
  accounts: {
    /**
     * Accounts opened through the API.
     * @beyond 409 `account_limit_reached`
     */
    opened: 10_000,
  },
  keys: {
    /** Valid API keys of an account. */
    active: 100,
    /** API keys that an account ever had. */
    issued: 2_000,
    /** How long a replaced key stays valid by default, so that a lost answer locks no client out. */
    defaultOverlapSeconds: 3_600,
    /** The longest time for which a replaced key stays valid. */
    overlapSeconds: 30 * 24 * 3_600,
    /** The longest lifetime of a key that expires. */
    lifetimeSeconds: 36_500 * 24 * 3_600,
  },
} as const;
