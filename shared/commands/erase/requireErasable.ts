import { account, type AccountState } from '../../domain/account/decider.ts';
import type { AccountHold, AccountRetention } from '../../domain/account/events.ts';
import { TurnlogError } from '../../errors.ts';
import type { StreamSource } from '../../eventlog/readWhole.ts';
import { accountStream } from '../../eventlog/streams.ts';
import { isoTime } from '../../ports/clock.ts';
import { shortStream } from '../target.ts';

const DAY_MS = 86_400_000;

/** What an account says of keeping: its row in the read models has it, and its state. */
export interface Keeping {
  retention: AccountRetention;
  hold: AccountHold;
}

export const erasureRefused = (message: string): TurnlogError =>
  new TurnlogError('erasure_refused', message);

function requireNoHold({ hold }: Keeping): void {
  if (!hold.held) return;
  const reason = hold.reason === undefined ? '' : ` (${hold.reason})`;
  throw erasureRefused(
    `Nothing of the account may be erased while its legal hold lasts${reason}. An operator ends it: accounts hold <account_id> off.`,
  );
}

/**
 * May what was active last at that instant be erased on request? `lastActivityAt` is undefined for
 * what no minimum protects: an agent, or an account, whose sessions are asked about one by one.
 * `now` in milliseconds since the epoch.
 * Errors: `erasure_refused`, which says by which rule and until when.
 */
export function requireErasable(
  keeping: Keeping,
  lastActivityAt: string | undefined,
  now: number,
): void {
  requireNoHold(keeping);
  const { minimum_days: days } = keeping.retention;
  if (days === undefined || lastActivityAt === undefined) return;
  const until = Date.parse(lastActivityAt) + days * DAY_MS;
  if (until <= now) return;
  throw erasureRefused(
    Number.isNaN(until)
      ? `Sessions of the account are kept for at least ${days} days, and this one does not say when it was active last.`
      : `Sessions of the account are kept for at least ${days} days after their last event: this one until ${isoTime(until)}.`,
  );
}

/** The instant before which a session was active last that is past the maximum; milliseconds. */
export const pastMaximumBefore = (days: number, now: number): number => now - days * DAY_MS;

/**
 * Must what was active last at that instant be erased because its time is over? Errors:
 * `erasure_refused` where it need not, or must not.
 */
export function requirePastMaximum(keeping: Keeping, lastActivityAt: string, now: number): void {
  requireNoHold(keeping);
  const { maximum_days: days } = keeping.retention;
  if (days !== undefined && Date.parse(lastActivityAt) < pastMaximumBefore(days, now)) return;
  throw erasureRefused('The session is not past the maximum for which the account keeps it.');
}

/**
 * What the account says of keeping, by its own stream: read models may be late. Errors:
 * `erasure_refused` where there is no such account, `stream_damaged` (noted), `store_unavailable`.
 */
export async function keepingOf(source: StreamSource, accountId: string): Promise<AccountState> {
  const { state } = await shortStream(accountStream(accountId), account).load(source);
  if (state.opened) return state;
  throw erasureRefused('There is no such account, so nothing says whether it may be erased.');
}
