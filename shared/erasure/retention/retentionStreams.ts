/** The streams in which retention records the proven time, and what operators confirmed. */
import { headOf, NO_STREAM } from '../../eventlog/append.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { reportDamage, type StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { retentionStream } from '../../eventlog/streams.ts';
import { authorOf } from '../../commandHandling/prepareEvents.ts';
import { handle, handleLoaded, type HandleContext } from '../../commandHandling/handle.ts';
import type { TargetStream } from '../../commandHandling/targetStream.ts';
import type { Actor } from '../../commandHandling/context.ts';
import { isoTime } from '../../ports/clock.ts';
import type { Position } from '../../ports/eventStore.ts';
import { retention, type RetentionCommand, type RetentionState } from './decider.ts';
import type { RetentionEvent } from './events.ts';

/** The stream of the proven time. */
const CLOCK_STREAM = retentionStream('clock');

/** The times belong to no account. */
const SYSTEM: Actor = { account_id: 'operator', key_id: 'system', request_id: 'retention' };
const OPERATOR: Actor = { account_id: 'operator', key_id: 'operator', request_id: 'cli' };

/** Each event replaces those before it, so that only the last one is read. */
const lastStateTarget = (
  stream: string,
): TargetStream<RetentionCommand, RetentionState, RetentionEvent> => ({
  stream,
  decider: retention,
  async load(source) {
    const [last] = await readPage(source, stream, { direction: 'backwards', limit: 1 });
    if (!last) return { state: retention.initialState, head: NO_STREAM };
    const before = { revision: last.recorded.revision - 1 };
    const state = retention.evolve(before, last.event as RetentionEvent);
    return { state, head: headOf(last.recorded) };
  },
});

/** A proven time that is recorded in the log. */
export type KeptTime = NonNullable<RetentionState['kept']>;

/** The proven time as last recorded; undefined before the first time. Errors: those of readPage. */
export const readKeptTime = async (source: StreamSource): Promise<KeptTime | undefined> =>
  (await lastStateTarget(CLOCK_STREAM).load(source)).state.kept;

/**
 * Records a proven time, in milliseconds since the epoch. Records nothing when a later time is
 * recorded, or when an operator has confirmed the clock since the time was read. Errors: those of
 * handleLoaded.
 */
export async function keepTime(
  context: HandleContext,
  time: number,
  confirmations: number,
): Promise<void> {
  const command = {
    author: authorOf(SYSTEM),
    command: { type: 'keep_time', time: isoTime(time) } as const,
  };
  await handleLoaded(context, lastStateTarget(CLOCK_STREAM), ({ state }) =>
    (state.kept?.confirmations ?? 0) === confirmations ? command : undefined,
  );
}

/** Records that an operator confirmed this time, in milliseconds since the epoch. */
export async function confirmTime(
  context: HandleContext,
  time: number,
  reason: string,
): Promise<void> {
  const command = { type: 'confirm_time', time: isoTime(time), reason } as const;
  await handle(context, OPERATOR, lastStateTarget(CLOCK_STREAM), command);
}

/**
 * Records that an operator confirmed the erasure of the account's sessions that were last active
 * before this time, in milliseconds since the epoch.
 */
export async function confirmErasures(
  context: HandleContext,
  account_id: string,
  before: number,
  reason: string,
): Promise<void> {
  const target = lastStateTarget(retentionStream(account_id));
  await handle(context, { ...OPERATOR, account_id }, target, {
    type: 'confirm_erasures',
    before: isoTime(before),
    reason,
  });
}

/** Sessions of the account that were last active before this time may be erased; milliseconds. */
export const readConfirmedBefore = async (
  source: StreamSource,
  accountId: string,
): Promise<number> =>
  (await lastStateTarget(retentionStream(accountId)).load(source)).state.confirmedBefore ??
  -Infinity;

/** A recorded time and its position in the log. */
interface Mark {
  time: number;
  position: Position;
}

async function readMark(source: StreamSource, revision: number): Promise<Mark> {
  const page = { direction: 'forwards', from: revision, limit: 1 } as const;
  const [decoded] = await readPage(source, CLOCK_STREAM, page);
  const event = decoded?.event as RetentionEvent | undefined;
  if (!decoded || !event || !('time' in event.data)) {
    const reason = `revision ${revision} records no time`;
    throw await reportDamage(source, CLOCK_STREAM, { reason, revision });
  }
  return { time: Date.parse(event.data.time), position: decoded.recorded.position };
}

/**
 * Tells which events the log certainly recorded before a time, in milliseconds since the epoch, by
 * their positions among the recorded proven times. The times of the events themselves may be wrong:
 * the clock may have been behind. Events from before the first proven time count as recorded before
 * any time. Errors: those of readPage.
 */
export async function readRecordedBefore(
  source: StreamSource,
  time: number,
): Promise<(position: Position) => boolean> {
  const { state } = await lastStateTarget(CLOCK_STREAM).load(source);
  if (!state.kept) return () => true;
  const { fromRevision } = state.kept;
  const first = await readMark(source, fromRevision);
  let latest = first.time <= time ? first : undefined;
  // The latest recorded time that is not after the requested one, by binary search.
  for (let low = fromRevision + 1, high = state.revision; low <= high;) {
    const middle = Math.floor((low + high) / 2);
    const mark = await readMark(source, middle);
    if (mark.time <= time) {
      latest = mark;
      low = middle + 1;
    } else high = middle - 1;
  }
  return (position) => position < first.position || (latest ? position < latest.position : false);
}
