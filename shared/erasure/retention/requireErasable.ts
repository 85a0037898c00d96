import type { AccountState } from '../../accounts/decider.ts';
import type { AccountHold, AccountRetention } from '../../accounts/events.ts';
import { isErasure } from '../../eventlog/eventTypes.ts';
import type { Erasure } from '../../domain/schema.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { RecordedEvent } from '../../eventlog/event.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { streamKind } from '../../eventlog/streams.ts';
import { isoTime } from '../../ports/clock.ts';
import type { Position } from '../../ports/eventStore.ts';
import type { HandleContext } from '../../commandHandling/handle.ts';
import type { JudgedTime } from './judgeClock.ts';
import { erasureRefusedError } from '../errors.ts';
import { requireNotNeeded, type DependentQueries, type Minimum } from './requireNotNeeded.ts';
import { readRecordedBefore } from './retentionStreams.ts';
import { readRetentionPolicy } from './retentionPolicy.ts';

const DAY_MS = 86_400_000;

/** The settings of an account that protect its sessions from erasure, from its row or its state. */
export interface RetentionPolicy {
  retention: AccountRetention;
  hold: AccountHold;
}

/** Dependencies of erasures. */
export type ErasureContext = HandleContext & {
  /** The time, if it is reliable. Without it, `clock` is used. */
  judge?: () => Promise<JudgedTime>;
  /**
   * Read models that include events up to this position, to find the sessions that need a stream.
   * Without them, only the stream itself is checked.
   */
  dependentsAt?: (position: Position) => Promise<DependentQueries>;
  /** Tells which events were recorded before a time in milliseconds; by default, reads the log. */
  recordedBefore?: (time: number) => Promise<(position: Position) => boolean>;
  /**
   * True where the minimum retention was over before, so that only a hold is checked again: for a replay
   * that is erased with its session, and for a proven erasure that is repeated after a restore.
   */
  minimumIsOver?: boolean | undefined;
};

/** A time that is not later than the true one. */
interface TrustedTime {
  /** Milliseconds since the epoch. */
  now: number;
  /** A sentence that says why it is behind the clock. */
  late?: string;
}

/**
 * Throws `erasure_refused` while a hold lasts. The message omits the hold's reason, which only
 * operators may see, because clients receive the message.
 */
export function requireNoHold({ hold }: RetentionPolicy): void {
  if (!hold.held) return;
  throw erasureRefusedError(
    'Nothing of the account may be erased while its legal hold lasts. An operator ends it: accounts hold <account_id> off.',
  );
}

/**
 * Checks that a session with this last activity may be erased on request. Before an account is
 * erased, each of its sessions is checked. `now` in milliseconds since the epoch; `late` is a
 * sentence on why that is behind the clock. Throws `erasure_refused`.
 */
export function requireErasable(
  policy: RetentionPolicy,
  lastActivityAt: string,
  now: number,
  late = '',
): void {
  requireNoHold(policy);
  const { minimum_days: days } = policy.retention;
  if (days === undefined) return;
  const keptUntil = Date.parse(lastActivityAt) + days * DAY_MS;
  if (keptUntil <= now) return;
  throw erasureRefusedError(
    Number.isNaN(keptUntil)
      ? `Sessions of the account are kept for at least ${days} days, and this one does not say when it was active last.`
      : `Sessions of the account are kept for at least ${days} days after their last event: this one until ${isoTime(keptUntil)}.${late && ` ${late}`}`,
  );
}

/**
 * Sessions whose last activity is before this instant (in milliseconds) are past their maximum
 * retention.
 */
export const retentionCutoff = (days: number, now: number): number => now - days * DAY_MS;

/**
 * Checks that a session with this last activity is past its maximum retention. Throws
 * `erasure_refused`.
 */
export function requirePastMaximum(
  policy: RetentionPolicy,
  lastActivityAt: string,
  now: number,
): void {
  requireNoHold(policy);
  const { maximum_days: days } = policy.retention;
  if (days !== undefined && Date.parse(lastActivityAt) < retentionCutoff(days, now)) return;
  throw erasureRefusedError('The session is not past the maximum for which the account keeps it.');
}

/**
 * The time for checks of minimum retention. It must be reliable, because setting a clock ahead must
 * not end the minimum. Throws `erasure_refused`.
 */
export async function trustedTime({ clock, judge }: ErasureContext): Promise<TrustedTime> {
  const judged = (await judge?.()) ?? { now: clock.now() };
  if (judged.problem === undefined) return judged;
  throw erasureRefusedError(
    `Sessions of the account are kept for a while, and whether that time is over can't be told. ${judged.problem}`,
  );
}

/**
 * Reads the policy. Throws `erasure_refused` for a damaged account stream, because an unreadable
 * event may have set a hold.
 */
const requireReadablePolicy = (source: StreamSource, accountId: string): Promise<AccountState> =>
  readRetentionPolicy(source, accountId).catch((error: unknown) => {
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
    throw erasureRefusedError(`Whether it may be erased can't be told. ${error.message}`);
  });

interface ErasureRequest {
  stream: string;
  /** The account that owns the stream; undefined when no event and no actor says so. */
  account_id: string | undefined;
  reason: Erasure['reason'];
  /** The last readable event of the stream. */
  last: Pick<RecordedEvent, 'type' | 'metadata' | 'position'> | undefined;
  /** The last event that an erasure does not append: of an erased stream, its last activity. */
  activity: Pick<RecordedEvent, 'metadata' | 'position'> | undefined;
  /** The number of its keys that exist. */
  live: number;
}

/**
 * Checks that the stream may be erased now for this reason. Accounts, and what is erased with them,
 * were checked by `eraseAccount`. A repeated erasure that would destroy keys is checked as well,
 * because the recorded one may be forged. Throws `erasure_refused`.
 */
export async function requireGrounds(
  context: ErasureContext,
  { stream, account_id, reason, last, activity, live }: ErasureRequest,
): Promise<void> {
  const kind = streamKind(stream);
  if (kind === 'account' || reason === 'account' || (live === 0 && !last)) return;
  const isRepeated = last !== undefined && isErasure(last.type);
  if (isRepeated && live === 0) return;
  if (account_id === undefined)
    throw erasureRefusedError(
      'No event says which account it belongs to, so nothing says whether it may be erased.',
    );
  const policy = await requireReadablePolicy(context, account_id);
  // A closed account was not held, so one that is both was not closed by an erasure.
  if (policy.erased || context.minimumIsOver) return requireNoHold(policy);
  if (!policy.opened)
    throw erasureRefusedError(
      'There is no such account, so nothing says whether it may be erased.',
    );
  requireNoHold(policy);
  // An erasure that is repeated is as old as the stream was before it.
  const active = isRepeated ? activity : last;
  const { minimum_days, maximum_days = 0 } = policy.retention;
  if (!active) return;
  const { recorded_at } = active.metadata;
  if (reason === 'retention' && !isRepeated) {
    const now = context.clock.now();
    requirePastMaximum(policy, recorded_at, now);
    await requireRecordedBefore(context, active, retentionCutoff(maximum_days, now));
    if (minimum_days === undefined) return;
    await requireNoDependents(context, stream, { days: minimum_days, now: async () => now });
  } else if (minimum_days !== undefined && (kind === 'session' || kind === 'agent')) {
    let time: Promise<TrustedTime> | undefined;
    const trusted = () => (time ??= trustedTime(context));
    if (kind === 'session') {
      const { now, late } = await trusted();
      requireErasable(policy, recorded_at, now, late);
      await requireRecordedBefore(context, active, retentionCutoff(minimum_days, now));
    }
    const minimum = { days: minimum_days, now: async () => (await trusted()).now };
    await requireNoDependents(context, stream, minimum);
  }
}

/**
 * Checks that the event was recorded before this time, whatever its own time says. Throws
 * `erasure_refused`.
 */
async function requireRecordedBefore(
  context: ErasureContext,
  { position }: Pick<RecordedEvent, 'position'>,
  time: number,
): Promise<void> {
  const find = context.recordedBefore ?? ((before) => readRecordedBefore(context, before));
  if ((await find(time))(position)) return;
  throw erasureRefusedError(
    'The session is younger than the time of its last event says: the clock was behind when that was recorded.',
  );
}

/** Throws `erasure_refused` if a session under its minimum retention needs the stream. */
async function requireNoDependents(
  { store, dependentsAt }: ErasureContext,
  stream: string,
  minimum: Minimum,
): Promise<void> {
  const end = await store.head();
  if (!dependentsAt || end === undefined) return;
  await requireNotNeeded(await dependentsAt(end), stream, minimum);
}
