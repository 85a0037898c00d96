import { LRUCache } from 'lru-cache';
import { LIMITS } from '../../shared/limits.ts';

export interface CircuitLimits {
  /** Number of consecutive failed calls that open the circuit. */
  failures: number;
  /** How long an open circuit rejects every call, in milliseconds. */
  openMs: number;
  /** A monotonic clock, in milliseconds. */
  now: () => number;
}

/** `failed`: the provider has failed; `answered`: it works; `given_up`: its state is unknown. */
export type Outcome = 'failed' | 'answered' | 'given_up';

/** The circuit breaker of one provider. */
export interface Circuit {
  /**
   * Admits a call of an account; undefined while the circuit is open for it. The returned function
   * must be called once with the outcome.
   */
  admit(accountId: string): ((outcome: Outcome) => void) | undefined;
  /** Milliseconds until a call of the account can test an open circuit. */
  testableInMs(accountId: string): number;
  /** True while calls are rejected and the last `failures` calls of all accounts have failed. */
  isOpen(): boolean;
}

/** The failed calls of an account since its last answered one. */
interface AccountFailures {
  inARow: number;
  /** Set once the circuit has opened for the account. */
  openUntil?: number;
}

/**
 * The accounts whose failures open the circuit for all, and whose tests keep it open. Inputs can
 * make every call of one account fail or take long, which shows nothing about the others' calls.
 */
const ACCOUNTS = 3;

/**
 * Creates a circuit breaker. It opens for an account after `failures` consecutive failed calls of
 * the account, and for all accounts after as many of three or more accounts. After `openMs` it is
 * half open: an account can test it by one call at a time, three accounts at once, and a failed test
 * opens it again for the account. Failed tests of three accounts open it again for all, and any
 * answer closes it for all. `onChange` is called when `isOpen` becomes true, and at the next answer.
 */
export function createCircuit(
  { failures, openMs, now }: CircuitLimits,
  onChange: (state: 'open' | 'closed') => void,
): Circuit {
  const failing = new LRUCache<string, AccountFailures>({ max: LIMITS.model.failingAccounts });
  /** Accounts whose calls are testing the circuit. */
  const testing = new Set<string>();
  /** Accounts with failures that count towards opening the circuit for all, as many as it takes. */
  const failedAccounts = new Set<string>();
  /** Failed calls of all accounts since the last answered one. */
  let inARow = 0;
  /** Set once the circuit has opened for all. */
  let openUntil: number | undefined;
  /** When the last rejection of an account or of all ends. */
  let rejectsUntil = 0;
  let isReported = false;

  const testableAt = (own: AccountFailures | undefined): number =>
    Math.max(openUntil ?? 0, own?.openUntil ?? 0);

  const isOpen = (): boolean => inARow >= failures && (testing.size > 0 || now() < rejectsUntil);

  function countFailure(accountId: string, own: AccountFailures, isTest: boolean): void {
    own.inARow += 1;
    inARow += 1;
    // Later failures of calls from before it opened do not keep it open.
    if (isTest || own.inARow === failures) own.openUntil = rejectsUntil = now() + openMs;
    const counts = isTest || openUntil === undefined;
    if (counts && failedAccounts.size < ACCOUNTS) failedAccounts.add(accountId);
    if (inARow >= failures && failedAccounts.size === ACCOUNTS) {
      openUntil = rejectsUntil = now() + openMs;
      failedAccounts.clear();
    }
    if (isReported || !isOpen()) return;
    isReported = true;
    onChange('open');
  }

  function close(accountId: string): void {
    if (openUntil === undefined) failing.delete(accountId);
    else failing.clear();
    failedAccounts.clear();
    inARow = 0;
    openUntil = undefined;
    if (isReported) onChange('closed');
    isReported = false;
  }

  function settle(accountId: string, outcome: Outcome, isTest: boolean): void {
    if (isTest) testing.delete(accountId);
    if (outcome === 'answered') return close(accountId);
    if (outcome === 'given_up' && !isTest) return;
    const own = failing.get(accountId) ?? { inARow: 0 };
    failing.set(accountId, own);
    if (outcome === 'failed') countFailure(accountId, own, isTest);
    // A test that was given up shows nothing, so the circuit opens again.
    else own.openUntil = rejectsUntil = now() + openMs;
  }

  return {
    admit(accountId) {
      const failure = failing.get(accountId);
      const isTest = openUntil !== undefined || failure?.openUntil !== undefined;
      if (isTest) {
        const isFull = openUntil !== undefined && testing.size >= ACCOUNTS;
        if (isFull || testing.has(accountId) || now() < testableAt(failure)) return undefined;
        testing.add(accountId);
      }
      return (outcome) => settle(accountId, outcome, isTest);
    },
    testableInMs: (accountId) => Math.max(0, testableAt(failing.get(accountId)) - now()),
    isOpen,
  };
}
