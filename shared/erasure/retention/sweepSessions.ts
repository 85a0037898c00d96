import { isLogUnavailable, isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { errorSummary } from '../../lib/errors/errorSummary.ts';
import { LIMITS } from '../../limits.ts';
import type { Logger } from '../../lib/logger.ts';
import { sleep } from '../../lib/time/sleep.ts';
import type { ReadModels } from '../../ports/readModels.ts';
import type { AccountRow, SessionRow } from '../../readModels/tables.ts';
import {
  PAGE_PAUSE_MS,
  selectAccounts,
  type AccountToSweep,
  type ConfirmationRule,
} from './selectAccounts.ts';
import { retentionCutoff } from './requireErasable.ts';
import { ANY_REPLAY } from '../../sessions/sessionFilter.ts';

const HOUR_MS = 3_600_000;
/**
 * After this many consecutive failures, the sweep stops: the cause probably affects all sessions.
 */
const MAX_FAILURES = 10;
/** Damaged sessions logged per sweep. Health reports the total number. */
const MAX_LINES = 10;
/** Sessions whose erasure failed that are remembered between sweeps. */
const MAX_REMEMBERED = 10_000;
/** Correct clocks may have differed by this much when the account was opened. */
const AGE_TOLERANCE_MS = 86_400_000;

/** The result of a sweep. */
export interface SweepResult {
  /** Sessions erased by the sweep. */
  erased: number;
  /**
   * Remaining sessions that are past their maximum retention, because they failed or exceeded the
   * sweep's limit.
   */
  due: number;
  /** Remaining sessions whose account is on hold. */
  held: number;
  /** Remaining sessions that could not be erased. */
  failed: number;
  /** Why the last of them could not be erased. */
  reason?: string;
  /** Resolves with true once an operator has confirmed the erasures of this sweep. */
  isConfirmed?: () => Promise<boolean>;
}

interface Sweep {
  readModels: Pick<ReadModels, 'listAccounts' | 'listSessions'>;
  /**
   * Erases a session. Rejects with `erasure_refused` when the session was continued or put on hold
   * in the meantime.
   */
  erase: (session: SessionRow) => Promise<void>;
  logger: Pick<Logger, 'info' | 'warn'>;
  /** Absent, no erasure needs a confirmation. */
  confirmation?: ConfirmationRule;
  /**
   * The ids of sessions that earlier sweeps could not erase, which this sweep brings up to date.
   * Such sessions remain due with a correct clock, too.
   */
  unerasable?: Set<string>;
  /** In milliseconds since the epoch. */
  now: number;
  signal: AbortSignal;
}

/** True when the session or its account is damaged. */
const isDamage = (error: unknown): boolean => isTurnlogError(error, 'stream_damaged');

/** True for a time of last activity that no correct clock can have recorded. */
const isOlderThanAccount = ({ updated_at }: SessionRow, { opened_at }: AccountRow): boolean =>
  !(Date.parse(updated_at) >= Date.parse(opened_at) - AGE_TOLERANCE_MS);

/** Remembers a session that could not be erased, in place of the oldest one if there are too many. */
function remember(unerasable: Set<string>, sessionId: string): void {
  unerasable.add(sessionId);
  const [oldest] = unerasable;
  if (unerasable.size > MAX_REMEMBERED) unerasable.delete(oldest!);
}

/** An account and how far its sessions have been examined. */
interface Turn extends AccountToSweep {
  after?: string;
}

/** Starts with another account each hour, because a sweep may not reach the last accounts. */
function firstTurns(accounts: readonly AccountRow[], now: number): Turn[] {
  const turns = accounts.flatMap((account): Turn[] => {
    const { maximum_days: days } = account.retention;
    return days === undefined ? [] : [{ account, before: retentionCutoff(days, now) }];
  });
  const first = Math.floor(now / HOUR_MS) % Math.max(1, turns.length);
  return [...turns.slice(first), ...turns.slice(0, first)];
}

/**
 * Erases sessions that are past their account's maximum retention, up to the limit of a sweep, and
 * counts the others. The accounts take turns, one page each, and only one page is kept in memory.
 * The next sweep finds the remaining sessions.
 */
export async function sweepSessions({
  readModels,
  erase,
  confirmation,
  unerasable = new Set(),
  logger,
  now,
  signal,
}: Sweep): Promise<SweepResult> {
  const result: SweepResult = { erased: 0, due: 0, held: 0, failed: 0 };
  let consecutiveFailures = 0;
  let loggedFailures = 0;

  const listPage = (accountId: string, after: string | undefined) =>
    readModels.listSessions(accountId, {
      limit: LIMITS.retention.pageEntries,
      bytes: LIMITS.http.pageBytes,
      replay_id: ANY_REPLAY,
      ...(after !== undefined && { after }),
    });

  function failed(session: SessionRow, reason: string): void {
    result.failed += 1;
    result.reason = `${session.session_id}: ${reason}`;
  }

  async function eraseOne(session: SessionRow, account: AccountRow): Promise<void> {
    result.due += 1;
    if (isOlderThanAccount(session, account))
      return failed(session, 'its last event says that it is older than its account.');
    if (result.erased >= LIMITS.retention.sessionsOfSweep) return;
    try {
      await erase(session);
      unerasable.delete(session.session_id);
      result.erased += 1;
      consecutiveFailures = 0;
    } catch (error) {
      signal.throwIfAborted();
      const isDamaged = isDamage(error);
      if (isLogUnavailable(error) && !isDamaged) throw error;
      remember(unerasable, session.session_id);
      // The session was continued, put on hold or is needed by another one.
      if (!isTurnlogError(error, 'erasure_refused')) {
        failed(session, isTurnlogError(error) ? error.message : 'it failed; the log says why.');
        if (!isDamaged || (loggedFailures += 1) <= MAX_LINES)
          logger.warn(
            { session_id: session.session_id, ...errorSummary(error) },
            'a session past its retention could not be erased',
          );
        // Damaged sessions do not stop the sweep, regardless of their number.
        if (!isDamaged && (consecutiveFailures += 1) >= MAX_FAILURES) throw error;
        return;
      }
    }
    result.due -= 1;
  }

  const isUnerasable = (session: SessionRow, account: AccountRow): boolean =>
    unerasable.has(session.session_id) || isOlderThanAccount(session, account);

  /** The accounts whose sessions are erased, without those that need a confirmation first. */
  async function confirmedTurns(): Promise<Turn[]> {
    const turns = firstTurns(await readModels.listAccounts(), now);
    if (!confirmation) return turns;
    const options = { ...confirmation, listPage, isUnerasable, signal };
    const { selected, due, ...confirmationNeeded } = await selectAccounts(turns, options);
    result.due += due;
    Object.assign(result, confirmationNeeded);
    return selected;
  }

  /**
   * Sweeps one page of an account's sessions. Resolves with the session to continue after, if there
   * are more.
   */
  async function sweepPage({ account, before, after }: Turn): Promise<string | undefined> {
    const { account_id, hold } = account;
    const page = await listPage(account_id, after);
    const erasedBefore = result.erased;
    for (const session of page.rows) {
      if (!(Date.parse(session.updated_at) < before)) {
        unerasable.delete(session.session_id);
        continue;
      }
      signal.throwIfAborted();
      if (hold.held) {
        result.due += 1;
        result.held += 1;
      } else await eraseOne(session, account);
    }
    if (result.erased > erasedBefore)
      logger.info(
        { account_id, erased: result.erased - erasedBefore, failed: result.failed },
        'sessions past the maximum of their retention were erased',
      );
    return page.more ? page.rows.at(-1)?.session_id : undefined;
  }

  for (let turns = await confirmedTurns(); turns.length > 0;) {
    const next: Turn[] = [];
    for (const turn of turns) {
      signal.throwIfAborted();
      const after = await sweepPage(turn);
      if (after === undefined) continue;
      next.push({ ...turn, after });
      await sleep(PAGE_PAUSE_MS, signal);
    }
    turns = next;
  }
  return result;
}
