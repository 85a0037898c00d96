import {
  circuitBreaker,
  CircuitState,
  ConsecutiveBreaker,
  handleWhen,
  type CircuitBreakerPolicy,
} from 'cockatiel';

export interface CircuitLimits {
  /** Number of consecutive failed calls that open the circuit. */
  failures: number;
  /** How long an open circuit rejects every call, in milliseconds. */
  openMs: number;
  /** A monotonic clock, in milliseconds. */
  now: () => number;
}

/** The outcome of a call. */
export type Outcome<Result> =
  | { result: Result }
  /** `failed`: the provider has failed; `answered`: it works; `given_up`: its state is unknown. */
  | { error: unknown; because: 'failed' | 'answered' | 'given_up' };

/** The circuit breaker of one provider. */
export interface Circuit {
  /**
   * Makes the call; undefined while the circuit is open. After `openMs`, one call is let through as
   * a probe, and its outcome closes the circuit or opens it again.
   */
  run<Result>(call: () => Promise<Outcome<Result>>): Promise<Outcome<Result> | undefined>;
  /** Milliseconds until the next call may pass; undefined while a call can pass. */
  opensIn(): number | undefined;
}

/** Carries a counted outcome through the breaker, which only counts errors. */
class CountedFailure extends Error {
  readonly outcome: Extract<Outcome<never>, { error: unknown }>;

  constructor(outcome: CountedFailure['outcome']) {
    super('a call that the breaker counts');
    this.outcome = outcome;
  }
}

/**
 * Creates a circuit breaker. It opens after `failures` consecutive failed calls. After `openMs` it
 * is half open and admits one call at a time. `onChange` is called when it opens and when it
 * closes.
 */
export function createCircuit(
  { failures, openMs, now }: CircuitLimits,
  onChange: (state: 'open' | 'closed') => void,
): Circuit {
  let closedUntil = 0;
  const breaker: CircuitBreakerPolicy = circuitBreaker(
    handleWhen(
      (error) =>
        error instanceof CountedFailure &&
        // A probe that was given up shows nothing, so the circuit opens again.
        (error.outcome.because === 'failed' || breaker.state === CircuitState.HalfOpen),
    ),
    {
      breaker: new ConsecutiveBreaker(failures),
      // The library uses the wall clock, which can change. This file measures the time itself.
      halfOpenAfter: -Infinity,
    },
  );
  let isOpen = false;
  breaker.onBreak(() => {
    closedUntil = now() + openMs;
    if (!isOpen) onChange('open');
    isOpen = true;
  });
  breaker.onReset(() => {
    isOpen = false;
    onChange('closed');
  });

  function opensIn(): number | undefined {
    if (breaker.state === CircuitState.HalfOpen) return 0;
    if (breaker.state === CircuitState.Closed || now() >= closedUntil) return undefined;
    return closedUntil - now();
  }

  return {
    async run<Result>(call: () => Promise<Outcome<Result>>) {
      if (opensIn() !== undefined) return undefined;
      try {
        return await breaker.execute(async () => {
          const outcome = await call();
          if ('error' in outcome && outcome.because !== 'answered')
            throw new CountedFailure(outcome);
          return outcome;
        });
      } catch (error) {
        if (error instanceof CountedFailure) return error.outcome;
        throw error;
      }
    },
    opensIn,
  };
}
