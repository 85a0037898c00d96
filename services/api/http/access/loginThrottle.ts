import { LRUCache } from 'lru-cache';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { Logger } from '../../../../shared/lib/logger.ts';
import { sleep } from '../../../../shared/lib/time/sleep.ts';

/** A key that is not valid. `key_id` is the one that it claims, where there is such a key. */
interface FailedLogin {
  address: string;
  key_id: string | undefined;
  request_id: string;
}

/** What is known of an address. */
interface AddressRecord {
  /** Failures, less one for each second since; a minute's worth at the most. */
  score: number;
  scoredAt: number;
  /** Answers that are held back. */
  delayedResponses: number;
  /** Failures that the log has not told yet. */
  unloggedFailures: number;
  latest: FailedLogin | undefined;
  logTimer: NodeJS.Timeout | undefined;
}

/** The first failures of an address are answered at once: a mistake, or a key that was revoked. */
const UNDELAYED_FAILURES = 10;
const DELAY_STEP_MS = 100;
const MAX_DELAY_MS = 2_000;
/** However many there were, an address has its first failures free again after so many seconds. */
const MAX_SCORE = 60;
const RETRY_AFTER_S = 2;

/** Of IPv6 the /64, which one customer of a provider has; of IPv4 the whole address. */
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
 * Answers logins that failed: with 401, later and later where one address goes on failing, with 429
 * where too many of those wait already; and tells the log, one line an address and ten seconds.
 * Who presents a valid key never comes here, whatever its address.
 * Errors: `unauthorized`, `rate_limited`, always one of them.
 */
export function createLoginThrottle(logger: Logger): (login: FailedLogin) => Promise<never> {
  const records = new LRUCache<string, AddressRecord>({
    max: LIMITS.logins.addresses,
    dispose(record) {
      clearTimeout(record.logTimer);
      say(record);
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
    const left = Math.max(0, record.score - (now - record.scoredAt) / 1_000);
    record.score = Math.min(MAX_SCORE, left + 1);
    record.scoredAt = now;
    return record;
  }

  function say(record: AddressRecord): void {
    if (record.unloggedFailures === 0) return;
    logger.warn({ ...record.latest, failures: record.unloggedFailures }, 'logins failed');
    record.unloggedFailures = 0;
  }

  function tell(record: AddressRecord, login: FailedLogin): void {
    record.unloggedFailures += 1;
    record.latest = login;
    if (record.logTimer !== undefined) return;
    const sayAndWait = (): void => {
      record.logTimer = undefined;
      if (record.unloggedFailures === 0) return;
      say(record);
      record.logTimer = setTimeout(sayAndWait, LIMITS.logins.lineEveryMs).unref();
    };
    sayAndWait();
  }

  async function holdBack(record: AddressRecord): Promise<void> {
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

  return async (login) => {
    const record = recordOf(networkOf(login.address));
    tell(record, login);
    await holdBack(record);
    throw unauthorizedError();
  };
}

/** One answer, whatever is wrong with the key. */
export const unauthorizedError = (): TurnlogError =>
  new TurnlogError(
    'unauthorized',
    'The request carries no valid API key, neither in x-api-key nor as Authorization: Bearer.',
  );
