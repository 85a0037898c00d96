import { isLogUnavailable, isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { errorSummary } from '../../lib/errors/errorSummary.ts';
import { LIMITS } from '../../limits.ts';
import type { Logger } from '../../lib/logger.ts';
import { sleep } from '../../lib/time/sleep.ts';
import type { ReadModels } from '../../ports/readModels.ts';
import type { AccountRow, SessionRow } from '../../readModels/tables.ts';
import { retentionCutoff } from './requireErasable.ts';
import { ANY_REPLAY } from '../../sessions/sessionFilter.ts';

const HOUR_MS = 3_600_000;
/** Between two pages, for everybody else. */
const PAUSE_MS = 10;
/** In a row: what fails so often fails for a reason that the next session will not mend. */
const MAX_FAILURES = 10;
/** As many of those are named in the log that fail each for itself; health has how many there are. */
const MAX_LINES = 10;
/** Clocks that were right may have been so far apart when the account was opened. */
const AGE_TOLERANCE_MS = 86_400_000;

/** What a sweep has found and done. */
export interface SweepResult {
  /** Sessions that it erased. */
  erased: number;
  /** Sessions that are past their maximum and still there: what failed, and what was too much. */
  due: number;
  /** Those of them whose account is held. */
  held: number;
  /** Those of them that could not be erased. */
  failed: number;
  /** Why the last one of them could not. */
  reason?: string;
}

interface Sweep {
  readModels: Pick<ReadModels, 'listAccounts' | 'listSessions'>;
  /** Erases a session unless it went on, or was held, meanwhile: `erasure_refused` then. */
  erase: (session: SessionRow) => Promise<void>;
  logger: Pick<Logger, 'info' | 'warn'>;
  /** In milliseconds since the epoch. */
  now: number;
  signal: AbortSignal;
}

/** The session is damaged, or its account is. */
const isItsOwn = (error: unknown): boolean => isTurnlogError(error, 'stream_damaged');

/** No clock that was right can have recorded it. */
const isOlderThanAccount = ({ updated_at }: SessionRow, { opened_at }: AccountRow): boolean =>
  !(Date.parse(updated_at) >= Date.parse(opened_at) - AGE_TOLERANCE_MS);

/** An account, what is due of it, and how far it was looked at. */
interface Turn {
  account: AccountRow;
  /** Sessions that were active last before then are due; milliseconds. */
  before: number;
  after?: string;
}

/** Another account begins each hour: with many of them a sweep may not come to the last ones. */
function firstTurns(accounts: readonly AccountRow[], now: number): Turn[] {
  const turns = accounts.flatMap((account): Turn[] => {
    const { maximum_days: days } = account.retention;
    return days === undefined ? [] : [{ account, before: retentionCutoff(days, now) }];
  });
  const first = Math.floor(now / HOUR_MS) % Math.max(1, turns.length);
  return [...turns.slice(first), ...turns.slice(0, first)];
}

/**
 * Erases the sessions of all accounts that are past their account's maximum, as many as one sweep
 * may, and counts the others. The accounts take turns, a page each. It keeps no more than a page.
 * What it leaves, the next one finds.
 */
export async function sweepSessions({
  readModels,
  erase,
  logger,
  now,
  signal,
}: Sweep): Promise<SweepResult> {
  const swept: SweepResult = { erased: 0, due: 0, held: 0, failed: 0 };
  let inARow = 0;
  let lines = 0;

  function failed(session: SessionRow, reason: string): void {
    swept.failed += 1;
    swept.reason = `${session.session_id}: ${reason}`;
  }

  async function eraseOne(session: SessionRow, account: AccountRow): Promise<void> {
    swept.due += 1;
    if (isOlderThanAccount(session, account))
      return failed(session, 'its last event says that it is older than its account.');
    if (swept.erased >= LIMITS.retention.sessionsOfSweep) return;
    try {
      await erase(session);
      swept.erased += 1;
      inARow = 0;
    } catch (error) {
      signal.throwIfAborted();
      const itsOwn = isItsOwn(error);
      if (isLogUnavailable(error) && !itsOwn) throw error;
      // It went on, or was held, since the page was read.
      if (!isTurnlogError(error, 'erasure_refused')) {
        failed(session, isTurnlogError(error) ? error.message : 'it failed; the log says why.');
        if (!itsOwn || (lines += 1) <= MAX_LINES)
          logger.warn(
            { session_id: session.session_id, ...errorSummary(error) },
            'a session past its retention could not be erased',
          );
        // However many of these there are: they are no reason to keep the others.
        if (!itsOwn && (inARow += 1) >= MAX_FAILURES) throw error;
        return;
      }
    }
    swept.due -= 1;
  }

  /** A page of an account, after a session; resolves with where to go on, if there is more. */
  async function sweepPage({ account, before, after }: Turn): Promise<string | undefined> {
    const { account_id, hold } = account;
    const page = await readModels.listSessions(account_id, {
      limit: LIMITS.retention.pageEntries,
      bytes: LIMITS.http.pageBytes,
      replay_id: ANY_REPLAY,
      ...(after !== undefined && { after }),
    });
    const erasedBefore = swept.erased;
    for (const session of page.rows) {
      if (!(Date.parse(session.updated_at) < before)) continue;
      signal.throwIfAborted();
      if (hold.held) {
        swept.due += 1;
        swept.held += 1;
      } else await eraseOne(session, account);
    }
    if (swept.erased > erasedBefore)
      logger.info(
        { account_id, erased: swept.erased - erasedBefore, failed: swept.failed },
        'sessions past the maximum of their retention were erased',
      );
    return page.more ? page.rows.at(-1)?.session_id : undefined;
  }

  for (let turns = firstTurns(await readModels.listAccounts(), now); turns.length > 0;) {
    const next: Turn[] = [];
    for (const turn of turns) {
      signal.throwIfAborted();
      const after = await sweepPage(turn);
      if (after === undefined) continue;
      next.push({ ...turn, after });
      await sleep(PAUSE_MS, signal);
    }
    turns = next;
  }
  return swept;
}
