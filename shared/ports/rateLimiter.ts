/** Counts the requests of API keys, second by second. */
interface Taken {
  /** False where the key has had all its requests of this second. */
  allowed: boolean;
  /** Requests that are left in this second. */
  remaining: number;
  /** When the next second begins, in milliseconds from now. */
  resetMs: number;
}

/** A rate limiter never rejects: where it can't ask others, it limits by what it knows itself. */
export interface RateLimiter {
  /** Takes one of the `perSecond` requests of the key. */
  take(keyId: string, perSecond: number): Promise<Taken>;
}
