/** Fixed limits of chat tokens, part of LIMITS. */
export const CHAT_TOKEN_LIMITS = {
  chatTokens: {
    /** How long a chat token is valid by default. */
    defaultLifetimeSeconds: 900,
    /** The longest lifetime of a chat token. */
    lifetimeSeconds: 3_600,
    /**
     * Requests per second and end user. They also count against the API key that
     * issued the tokens.
     * @beyond 429 `rate_limited`
     */
    requestsPerSecond: 10,
    /**
     * Open requests and streams per end user and process.
     * @beyond 429 `rate_limited`
     */
    openRequests: 10,
    /**
     * Runs per end user and process.
     * @beyond 429 `rate_limited`
     */
    runs: 4,
  },
} as const;
