import type { AccountState } from '../../accounts/decider.ts';
import type { AccountHold, AccountRetention } from '../../accounts/events.ts';
import { isErasure } from '../../eventlog/eventTypes.ts';
import type { Erasure } from '../../domain/schema.ts';
import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { RecordedEvent } from '../../eventlog/event.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { streamKind } from '../../eventlog/streams.ts';
import { isoTime } from '../../ports/clock.ts';
import type { HandleContext } from '../../commandHandling/handle.ts';
import type { JudgedTime } from './judgeClock.ts';
import { readRetentionPolicy } from './retentionPolicy.ts';

const DAY_MS = 86_400_000;

/** What protects an account's sessions from erasure, as its row and its state have it. */
export interface RetentionPolicy {
  retention: AccountRetention;
  hold: AccountHold;
}

/** What erasures work with. */
export type ErasureContext = HandleContext & {
  /** The time, if it can be trusted; without it, that of `clock`. */
  judge?: () => Promise<JudgedTime>;
  /** True for a stream that is erased with another one, which was checked. */
  goesAlong?: true;
};

export const erasureRefusedError = (message: string): TurnlogError =>
  new TurnlogError('erasure_refused', message);

export function requireNoHold({ hold }: RetentionPolicy): void {
  if (!hold.held) return;
  const reason = hold.reason === undefined ? '' : ` (${hold.reason})`;
  throw erasureRefusedError(
    `Nothing of the account may be erased while its legal hold lasts${reason}. An operator ends it: accounts hold <account_id> off.`,
  );
}

/**
 * May a session that was active last at that instant be erased on request? No minimum protects an
 * agent; of an account its sessions are asked about one by one. `now` in milliseconds since the
 * epoch.
 */
export function requireErasable(
  keeping: RetentionPolicy,
  lastActivityAt: string,
  now: number,
): void {
  requireNoHold(keeping);
  const { minimum_days: days } = keeping.retention;
  if (days === undefined) return;
  const until = Date.parse(lastActivityAt) + days * DAY_MS;
  if (until <= now) return;
  throw erasureRefusedError(
    Number.isNaN(until)
      ? `Sessions of the account are kept for at least ${days} days, and this one does not say when it was active last.`
      : `Sessions of the account are kept for at least ${days} days after their last event: this one until ${isoTime(until)}.`,
  );
}

/** The instant before which a session was active last that is past the maximum; milliseconds. */
export const retentionCutoff = (days: number, now: number): number => now - days * DAY_MS;

/** Must what was active last at that instant be erased because its time is over? */
export function requirePastMaximum(
  keeping: RetentionPolicy,
  lastActivityAt: string,
  now: number,
): void {
  requireNoHold(keeping);
  const { maximum_days: days } = keeping.retention;
  if (days !== undefined && Date.parse(lastActivityAt) < retentionCutoff(days, now)) return;
  throw erasureRefusedError('The session is not past the maximum for which the account keeps it.');
}

/** The time by which a minimum is over: who sets a clock ahead is not to end it. */
export async function trustedTime({ clock, judge }: ErasureContext): Promise<number> {
  const judged = (await judge?.()) ?? { now: clock.now() };
  if (judged.problem === undefined) return judged.now;
  throw erasureRefusedError(
    `Sessions of the account are kept for a while, and whether that time is over can't be told. ${judged.problem}`,
  );
}

/** An unreadable event may have set a hold. */
const requireReadablePolicy = (source: StreamSource, accountId: string): Promise<AccountState> =>
  readRetentionPolicy(source, accountId).catch((error: unknown) => {
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
    throw erasureRefusedError(`Whether it may be erased can't be told. ${error.message}`);
  });

interface ErasureRequest {
  stream: string;
  /** Whose the stream is. */
  account_id: string;
  reason: Erasure['reason'];
  /** The last event of the stream. */
  last: Pick<RecordedEvent, 'type' | 'metadata'>;
}

/**
 * May the stream be erased for that reason now? What was erased already may be so again, what goes
 * with its account may with that, and of an account's own stream its decider knows.
 */
export async function requireGrounds(
  context: ErasureContext,
  { stream, account_id, reason, last }: ErasureRequest,
): Promise<void> {
  const kind = streamKind(stream);
  if (reason === 'account' || kind === 'account' || isErasure(last.type)) return;
  const keeping = await requireReadablePolicy(context, account_id);
  if (keeping.erased) return;
  if (!keeping.opened)
    throw erasureRefusedError(
      'There is no such account, so nothing says whether it may be erased.',
    );
  const { recorded_at } = last.metadata;
  if (reason === 'retention') requirePastMaximum(keeping, recorded_at, context.clock.now());
  else if (kind !== 'session' || keeping.retention.minimum_days === undefined)
    requireNoHold(keeping);
  else requireErasable(keeping, recorded_at, await trustedTime(context));
}
