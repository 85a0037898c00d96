/** The result of counting one request of an API key. */
interface RateLimitState {
  /** False when the key has used up its requests of this second. */
  allowed: boolean;
  /** Remaining requests in this second. */
  remaining: number;
  /** When the next second begins, in milliseconds from now. */
  resetMs: number;
}

/** Never rejects: while other processes are unreachable, it limits by its own count. */
export interface RateLimiter {
  /** Counts a request of the key against its limit per second. */
  take(keyId: string, perSecond: number): Promise<RateLimitState>;
}

/** Counts of requests that several processes share. */
export interface SharedCounts {
  /**
   * Adds requests of a key to those of its second, which begins with the first of them. Resolves with
   * all requests of that second, and with the time in milliseconds until it ends.
   */
  add(keyId: string, requests: number): Promise<{ requests: number; msLeft: number }>;
}
