import { LRUCache } from 'lru-cache';
import type { AccountLimits } from '../accounts/events.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { LIMITS } from '../limits.ts';
import { isoTime, type Clock } from '../ports/clock.ts';
import type { Position } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';
import { addCounts, noCounts, pendingCounts, type Counts, type PendingCounts } from './counts.ts';
import type { AppendPurpose } from './appendPurpose.ts';
import { exceededQuota, QUOTA_NAMES, quotaError, type Quotas } from './quotaRules.ts';
import { entriesUpTo } from '../lib/memory/entriesUpTo.ts';

/** An append that was admitted. One of its functions must be called when it ends. */
interface Admission {
  appended: (position: Position) => void;
  failed: () => void;
}

/** The storage use of an account, and its quotas. */
export interface StorageUse {
  /** UTC date. */
  day: string;
  today: Counts;
  total: Counts;
  quotas: Quotas;
}

/** The quotas of all accounts for events and bytes in the log. */
export interface StorageQuotas {
  /**
   * Reserves an append before it is made. Throws `quota_exceeded` unless the purpose is `always`.
   */
  admit: (accountId: string, purpose: AppendPurpose, counts: Counts) => Promise<Admission>;
  /** Throws `quota_exceeded` as `admit` would, without a reservation. */
  check: (accountId: string, purpose: AppendPurpose, counts: Counts) => Promise<void>;
  /** Errors: `store_unavailable`. */
  useOf: (accountId: string) => Promise<StorageUse>;
}

interface Options {
  readModels: Pick<ReadModels, 'findAccount' | 'findStorage'>;
  /** Of accounts without their own. */
  defaults: Quotas;
  clock: Clock;
  /** A monotonic clock, in milliseconds. */
  now?: () => number;
}

/** The counts of an account as last read, and appends that they may lack. */
interface Account extends StorageUse {
  pending: PendingCounts;
  /** The counts include events up to here. */
  position: Position;
  readAt: number;
  firstRead: Promise<void>;
}

const quotasOf = (defaults: Quotas, limits: AccountLimits = {}): Quotas =>
  Object.fromEntries(QUOTA_NAMES.map((name) => [name, limits[name] ?? defaults[name]])) as Quotas;

/**
 * Counts come from the read models, which all processes share, plus the appends of this process
 * that the read models do not show yet. So a burst cannot pass a quota while the projector is late;
 * other processes' appends count once they are projected. While the read models are unavailable,
 * the last known counts apply.
 */
export function createStorageQuotas({
  readModels,
  defaults,
  clock,
  now = () => performance.now(),
}: Options): StorageQuotas {
  const accounts = new LRUCache<string, Account>(entriesUpTo(LIMITS.cache.accounts));
  const today = (): string => isoTime(clock.now()).slice(0, 10);

  async function read(accountId: string, account: Account): Promise<void> {
    account.readAt = now();
    const day = today();
    const [row, stored] = await Promise.all([
      readModels.findAccount(accountId),
      readModels.findStorage(accountId, day),
    ]);
    account.quotas = quotasOf(defaults, row?.limits);
    const position = (stored.total?.position ?? '') as Position;
    // An earlier read may be answered later, and lack what was dropped from `pending` since.
    if (position < account.position) return;
    account.position = position;
    account.day = day;
    account.today = stored.today ?? noCounts();
    account.total = stored.total ?? noCounts();
    account.pending.drop(position);
  }

  function accountOf(accountId: string): Account {
    const cachedAccount = accounts.get(accountId);
    if (cachedAccount) return cachedAccount;
    const account: Account = {
      day: '',
      today: noCounts(),
      total: noCounts(),
      quotas: defaults,
      pending: pendingCounts(),
      position: '' as Position,
      readAt: 0,
      firstRead: Promise.resolve(),
    };
    account.firstRead = read(accountId, account).catch((error: unknown) => {
      if (isTurnlogError(error, 'store_unavailable')) return;
      accounts.delete(accountId);
      throw error;
    });
    accounts.set(accountId, account);
    return account;
  }

  function used(account: Account): Pick<StorageUse, 'day' | 'today' | 'total'> {
    const day = today();
    const counted = account.day === day ? account.today : noCounts();
    return {
      day,
      today: addCounts(counted, account.pending.on(day)),
      total: addCounts(account.total, account.pending.all()),
    };
  }

  async function readAccount(accountId: string): Promise<Account> {
    const account = accountOf(accountId);
    await account.firstRead;
    if (now() - account.readAt >= LIMITS.storage.freshMs)
      void read(accountId, account).catch(() => undefined);
    return account;
  }

  function requireQuota(account: Account, purpose: AppendPurpose, counts: Counts): void {
    if (purpose === 'always') return;
    const exceeded = exceededQuota(account.quotas, purpose, used(account), counts);
    if (exceeded) throw quotaError(exceeded, account.quotas[exceeded], clock.now());
  }

  return {
    async check(accountId, purpose, counts) {
      requireQuota(await readAccount(accountId), purpose, counts);
    },
    async admit(accountId, purpose, counts) {
      const account = await readAccount(accountId);
      // In one step: other appends may not be admitted between the check and the reservation.
      requireQuota(account, purpose, counts);
      return account.pending.begin(today(), counts);
    },
    async useOf(accountId) {
      const account = accountOf(accountId);
      await account.firstRead;
      await read(accountId, account);
      return { ...used(account), quotas: account.quotas };
    },
  };
}
