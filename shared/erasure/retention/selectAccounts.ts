/**
 * Decides which accounts a sweep leaves alone until an operator has confirmed their erasures: a wrong
 * clock or a wrong maximum makes many sessions due at once.
 */
import { LIMITS } from '../../limits.ts';
import { sleep } from '../../lib/time/sleep.ts';
import type { AccountRow, SessionRow } from '../../readModels/tables.ts';

/** Pause between two pages, so that other work can proceed. */
export const PAGE_PAUSE_MS = 10;
/**
 * Hourly sweeps erase a session within the day in which it becomes due. An older one became due while
 * no sweep ran, or by a change of the clock or of the maximum.
 */
const OVERDUE_MS = 86_400_000;
/** Confirmations of accounts that are looked up between two sweeps. */
const MAX_LOOKED_UP = 100;

/** When an operator has to confirm the erasures of a sweep. */
export interface ConfirmationRule {
  /** The share of sessions that is erased without a confirmation, in percent. */
  percent: number;
  /**
   * Sessions of the account that were last active before this time are confirmed; milliseconds
   * since the epoch.
   */
  confirmedBefore: (accountId: string) => Promise<number>;
}

/** An account with a maximum. */
export interface AccountToSweep {
  account: AccountRow;
  /** Sessions whose last activity is before this time are due; milliseconds. */
  before: number;
}

interface Counts {
  sessions: number;
  /** Sessions past their maximum. */
  due: number;
  /** Those of them that no operator has confirmed. */
  unconfirmed: number;
  /** Those of the unconfirmed ones that have been due for longer than a day and may be erasable. */
  overdue: number;
}

/** The accounts to sweep, and the erasures that an operator has to confirm, if any. */
interface SelectedAccounts<Account> {
  selected: Account[];
  /** Sessions past their maximum of the accounts that need a confirmation. */
  due: number;
  reason?: string;
  /** Resolves with true once an operator has confirmed some of it. */
  isConfirmed?: () => Promise<boolean>;
}

interface SelectionOptions extends ConfirmationRule {
  listPage: (
    accountId: string,
    after: string | undefined,
  ) => Promise<{ rows: SessionRow[]; more: boolean }>;
  /** True for a session that stays overdue whatever the clock says. */
  isUnerasable: (session: SessionRow, account: AccountRow) => boolean;
  signal: AbortSignal;
}

/** An account whose sessions are counted. */
interface Counted<Account> extends Counts {
  account: Account;
  /** As confirmedBefore returned it. */
  confirmed: number;
}

const sum = (all: readonly Counts[], name: keyof Counts): number =>
  all.reduce((total, counts) => total + counts[name], 0);

function exceeds(all: readonly Counts[], percent: number): boolean {
  const share = (sum(all, 'sessions') * percent) / 100;
  const { overdueSessions, unconfirmedSessions } = LIMITS.retention;
  return (
    sum(all, 'overdue') > Math.max(overdueSessions, share) ||
    sum(all, 'unconfirmed') > Math.max(unconfirmedSessions, share)
  );
}

function reasonOf(unconfirmed: readonly Counted<AccountToSweep>[]): string {
  const [first, ...others] = unconfirmed.map(({ account }) => account.account.account_id);
  const [whose, which] =
    others.length === 0
      ? [first, first]
      : [`${unconfirmed.length} accounts, such as ${first},`, '<account>|all'];
  return `${sum(unconfirmed, 'unconfirmed')} of the ${sum(unconfirmed, 'sessions')} sessions of ${whose} are past their maximum at once, and retention erases nothing of them until an operator confirms it. Check the clock and the maximum, then: npm run cli -- retention confirm ${which} --reason <text>.`;
}

/**
 * Separates the accounts whose sessions may be erased from those that an operator has to confirm:
 * because of their own sessions, or because too many are due in all accounts together.
 */
export async function selectAccounts<Account extends AccountToSweep>(
  accounts: readonly Account[],
  { percent, confirmedBefore, listPage, isUnerasable, signal }: SelectionOptions,
): Promise<SelectedAccounts<Account>> {
  async function count(account: Account): Promise<Counted<Account>> {
    const { account_id } = account.account;
    const confirmed = await confirmedBefore(account_id);
    const counted = { account, confirmed, sessions: 0, due: 0, unconfirmed: 0, overdue: 0 };
    for (let after: string | undefined; ;) {
      signal.throwIfAborted();
      const page = await listPage(account_id, after);
      counted.sessions += page.rows.length;
      for (const row of page.rows) {
        const active = Date.parse(row.updated_at);
        if (!(active < account.before)) continue;
        counted.due += 1;
        if (active < confirmed) continue;
        counted.unconfirmed += 1;
        if (active < account.before - OVERDUE_MS && !isUnerasable(row, account.account))
          counted.overdue += 1;
      }
      after = page.rows.at(-1)?.session_id;
      if (!page.more || after === undefined) return counted;
      await sleep(PAGE_PAUSE_MS, signal);
    }
  }

  const counted: Counted<Account>[] = [];
  for (const account of accounts)
    if (!account.account.hold.held) counted.push(await count(account));
  const large = new Set(counted.filter((counts) => exceeds([counts], percent)));
  const others = counted.filter((counts) => !large.has(counts));
  const areMany = exceeds(others, percent);
  const needsConfirmation = (counts: Counted<Account>): boolean =>
    large.has(counts) || (areMany && counts.unconfirmed > 0);
  const unconfirmed = counted.filter(needsConfirmation);
  const skipped = new Set(
    counted
      .filter((counts) => needsConfirmation(counts) || counts.due === 0)
      .map(({ account }) => account),
  );
  return {
    selected: accounts.filter((account) => !skipped.has(account)),
    due: sum(unconfirmed, 'due'),
    ...(unconfirmed.length > 0 && {
      reason: reasonOf(unconfirmed),
      async isConfirmed() {
        for (const { account, confirmed } of unconfirmed.slice(0, MAX_LOOKED_UP))
          if ((await confirmedBefore(account.account.account_id)) > confirmed) return true;
        return false;
      },
    }),
  };
}
