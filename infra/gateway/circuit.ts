import {
  circuitBreaker,
  CircuitState,
  ConsecutiveBreaker,
  handleWhen,
  type CircuitBreakerPolicy,
} from 'cockatiel';

export interface CircuitLimits {
  /** Failed calls in a row that open it. */
  failures: number;
  /** How long an open one lets nothing through, in milliseconds. */
  openMs: number;
  /** Milliseconds of a clock that is never set. */
  now: () => number;
}

/** What became of a call. */
export type Outcome<Result> =
  | { result: Result }
  /** `failed`: the other side is in trouble; `answered`: it is not; `given_up`: nobody knows. */
  | { error: unknown; because: 'failed' | 'answered' | 'given_up' };

/** The circuit to one provider. */
export interface Circuit {
  /**
   * Makes the call; undefined where the circuit lets nothing through now. Once its time is over, one
   * call is let through, and decides.
   */
  run<Result>(call: () => Promise<Outcome<Result>>): Promise<Outcome<Result> | undefined>;
  /** In how many milliseconds a call may be let through; undefined while all are. */
  opensIn(): number | undefined;
}

/** Carries what the breaker has to count through it. */
class CountedFailure extends Error {
  readonly outcome: Extract<Outcome<never>, { error: unknown }>;

  constructor(outcome: CountedFailure['outcome']) {
    super('a call that the breaker counts');
    this.outcome = outcome;
  }
}

/**
 * A circuit breaker: closed; open after `failures` calls in a row that failed; after `openMs` half
 * open, for one call at a time. `onChange` hears of each opening and closing.
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
        // Whoever gave up the call that was to decide has not decided.
        (error.outcome.because === 'failed' || breaker.state === CircuitState.HalfOpen),
    ),
    {
      breaker: new ConsecutiveBreaker(failures),
      // The library looks at a clock that can be set; the time is kept here.
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
