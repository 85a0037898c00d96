import { LRUCache } from 'lru-cache';
import { unauthorizedError } from '../../../../shared/accounts/authenticate.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { Logger } from '../../../../shared/lib/logger.ts';
import { sleep } from '../../../../shared/lib/time/sleep.ts';
import { entriesUpTo } from '../../../../shared/lib/memory/entriesUpTo.ts';

/** `key_id` is the one that the invalid key claims, where such a key exists. */
interface FailedLogin {
  address: string;
  key_id: string | undefined;
  request_id: string;
}

/** Rejects with `error` (by default that of an invalid API key), or with `rate_limited`. */
export type LoginThrottle = (login: FailedLogin, error?: TurnlogError) => Promise<never>;

/** The failures of one network. */
interface AddressRecord {
  /** Failures, minus one per second since; at most MAX_SCORE. */
  score: number;
  scoredAt: number;
  /** Responses that are being delayed. */
  delayedResponses: number;
  /** Failures that are not logged yet. */
  unloggedFailures: number;
  latest: FailedLogin | undefined;
  logTimer: NodeJS.Timeout | undefined;
}

/** The first failures of an address get no delay: they may be a mistake, or a revoked key. */
const UNDELAYED_FAILURES = 10;
const DELAY_STEP_MS = 100;
const MAX_DELAY_MS = 2_000;
/** After this many seconds without failures, the first ones get no delay again. */
const MAX_SCORE = 60;
const RETRY_AFTER_S = 2;

/** The /64 of an IPv6 address, which providers assign to one customer; all of an IPv4 address. */
export function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  if (!plain.includes(':')) return plain;
  const [left = [], right = []] = plain
    .split('::')
    .map((side) => side.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`;
}

/**
 * Rejects failed logins with 401, with increasing delay for an address that keeps failing, and with
 * 429 where too many of those are already delayed. Logs at most one line per address and 10 s. Valid
 * keys are never delayed, whatever their address.
 */
export function createLoginThrottle(logger: Logger): LoginThrottle {
  const records = new LRUCache<string, AddressRecord>({
    ...entriesUpTo(LIMITS.logins.addresses),
    dispose(record) {
      clearTimeout(record.logTimer);
      flushLog(record);
    },
  });
  let waiting = 0;

  function recordOf(network: string): AddressRecord {
    const now = performance.now();
    let record = records.get(network);
    if (!record) {
      record = {
        score: 0,
        scoredAt: now,
        delayedResponses: 0,
        unloggedFailures: 0,
        latest: undefined,
        logTimer: undefined,
      };
      records.set(network, record);
    }
    const decayed = Math.max(0, record.score - (now - record.scoredAt) / 1_000);
    record.score = Math.min(MAX_SCORE, decayed + 1);
    record.scoredAt = now;
    return record;
  }

  function flushLog(record: AddressRecord): void {
    if (record.unloggedFailures === 0) return;
    logger.warn({ ...record.latest, failures: record.unloggedFailures }, 'logins failed');
    record.unloggedFailures = 0;
  }

  function logFailure(record: AddressRecord, login: FailedLogin): void {
    record.unloggedFailures += 1;
    record.latest = login;
    if (record.logTimer !== undefined) return;
    const flushAndWait = (): void => {
      record.logTimer = undefined;
      if (record.unloggedFailures === 0) return;
      flushLog(record);
      record.logTimer = setTimeout(flushAndWait, LIMITS.logins.lineEveryMs).unref();
    };
    flushAndWait();
  }

  async function delayResponse(record: AddressRecord): Promise<void> {
    const delay = Math.min(MAX_DELAY_MS, (record.score - UNDELAYED_FAILURES) * DELAY_STEP_MS);
    if (delay <= 0) return;
    if (record.delayedResponses >= LIMITS.logins.heldOfAddress || waiting >= LIMITS.logins.held)
      throw new TurnlogError('rate_limited', 'Too many logins from this address have failed.', {
        retriable: true,
        retryAfterSeconds: RETRY_AFTER_S,
      });
    record.delayedResponses += 1;
    waiting += 1;
    await sleep(delay).finally(() => {
      record.delayedResponses -= 1;
      waiting -= 1;
    });
  }

  return async (login, error = unauthorizedError()) => {
    const record = recordOf(networkOf(login.address));
    logFailure(record, login);
    await delayResponse(record);
    throw error;
  };
}
