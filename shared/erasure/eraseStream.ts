import { headOf } from '../eventlog/append.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { isErasure } from '../eventlog/eventTypes.ts';
import { endsWithErasure } from '../eventlog/reading/erasureLookup.ts';
import { withReadMemory } from '../eventlog/reading/readMemory.ts';
import type { Erasure } from '../domain/schema.ts';
import { Rejection } from '../domain/rejection.ts';
import { NO_ACCOUNT, yieldToEventLoop } from '../lib/concurrency/yieldToEventLoop.ts';
import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import type { Position } from '../ports/eventStore.ts';
import { recordAudit } from '../audit/commands.ts';
import { authorOf, type Author } from '../commandHandling/prepareEvents.ts';
import type { Actor } from '../commandHandling/context.ts';
import {
  handleLoaded,
  type HandleResult,
  type AuthoredCommand,
} from '../commandHandling/handle.ts';
import { requireGrounds, type ErasureContext } from './retention/requireErasable.ts';
import {
  createErasureTarget,
  type ErasureFindings,
  type LoadedForErasure,
} from './readForErasure.ts';

/** Why a stream is erased. */
export type ErasureGrounds = Pick<Erasure, 'reason'> & { note?: string | undefined };

/** Why an erasure was started, for the process that finishes it. */
interface ErasureReason {
  grounds: ErasureGrounds;
  /** The actor that started the erasure; undefined for the system. */
  actor: Actor | undefined;
}

/** Serializes the reason for the key store, which keeps it until the erasure is complete. */
export const serializeErasureReason = (
  { reason, note }: ErasureGrounds,
  { account_id, key_id, request_id }: Partial<Actor> = {},
): string => JSON.stringify({ reason, note, account_id, key_id, request_id });

export function parseErasureReason(text: string): ErasureReason {
  const { reason, note, ...actor } = JSON.parse(text) as ErasureGrounds & Partial<Actor>;
  return {
    grounds: { reason, note },
    actor: actor.account_id === undefined ? undefined : (actor as Actor),
  };
}

/** A recorded erasure. */
export interface ErasedStream {
  stream: string;
  account_id: string;
  event: { id: string; revision: number; hash: string };
  /** UTC, ISO 8601. */
  erased_at: string;
  position: Position;
  /** True when the stream had already been erased. */
  again: boolean;
  key_ids: string[];
  /**
   * A clause about the unreadable part of a damaged stream, or about a key that was not destroyed;
   * undefined when the erasure covers everything.
   */
  unread: string | undefined;
}

/** The author of erasures that another process finishes. */
const SYSTEM = { key_id: 'system', request_id: 'recovery' };

const commandOf = (
  { reason, note }: ErasureGrounds,
  { keys }: LoadedForErasure['state'],
): Erasure => ({
  reason,
  ...(note !== undefined && { note }),
  key_ids: [...keys.own],
});

/** Describes a part that an erasure did not reach; undefined when it covers everything. */
function describeRest({ flaw, keys }: ErasureFindings): string | undefined {
  const [first] = keys.doubtful;
  return flaw ?? (first && `the key ${first[0]} was not destroyed: ${first[1]}`);
}

/**
 * The author of an erasure. It does not matter for a stream without events, because the decider
 * rejects the erasure.
 */
const authorFor = (actor: Actor | undefined, last: RecordedEvent | undefined): Author =>
  actor
    ? authorOf(actor)
    : { ...SYSTEM, account_id: last?.metadata.account_id ?? '', causation_id: last?.id ?? '' };

/** The erasure as recorded in the log; undefined when no event of the stream is readable. */
function describeErasure({
  loaded,
  appended,
}: HandleResult<LoadedForErasure>): ErasedStream | undefined {
  const { stream, keys, last } = loaded.state;
  if (!last) return undefined;
  const { metadata } = last;
  const { revision, hash } = appended?.head ?? headOf(last);
  return {
    stream,
    account_id: metadata.account_id,
    event: { id: appended?.lastEventId ?? last.id, revision, hash },
    erased_at: appended?.recorded_at ?? metadata.recorded_at,
    position: appended?.position ?? last.position,
    again: appended === undefined,
    key_ids: [...keys.own],
    unread: describeRest(loaded.state),
  };
}

/**
 * The error for a stream that can't record its erasure. Its keys are destroyed, but its rows in the
 * read models remain.
 */
const unrecordedError = (
  stream: string,
  { keys, flaw }: ErasureFindings,
  cause?: unknown,
): TurnlogError =>
  new TurnlogError(
    'stream_damaged',
    `The erasure of ${stream} can't be recorded, because its stream is damaged: ${flaw ?? 'the store takes nothing more'}. The keys that were found in it (${keys.own.size}) are destroyed; an agent's or account's texts \`projections rebuild\` takes out of the read models.`,
    { cause },
  );

/** True when the stream's last event is its erasure. False for a stream that can't be read now. */
const isRecorded = ({ store }: ErasureContext, stream: string): Promise<boolean> =>
  endsWithErasure(store, stream).catch(() => false);

/** True when an earlier erasure is recorded and left no key. */
const isComplete = ({ last, keys }: ErasureFindings): boolean =>
  last !== undefined && isErasure(last.type) && keys.live.size === 0;

/**
 * Waits for the account's turn: the embedded key store waits for the disk on this thread, so many
 * erasures would otherwise keep the event loop busy.
 */
const yieldFairly = (actor: Actor | undefined): Promise<void> =>
  yieldToEventLoop(actor?.account_id ?? NO_ACCOUNT);

/**
 * Records the erasure of a stream's texts once; `endErasure` then destroys the keys. Without an
 * actor, the author is the system. In a damaged stream, the erasure covers all readable events.
 * Throws Rejection, `erasure_refused`, `stream_damaged` when the erasure can't be recorded, and
 * errors of the stores.
 */
export const recordErasure = (
  context: ErasureContext,
  stream: string,
  grounds: ErasureGrounds,
  actor?: Actor,
): Promise<ErasedStream> =>
  // An erasure that has begun is finished, also without its request.
  withReadMemory(context, () => beginAndRecord(context, stream, grounds, actor));

async function beginAndRecord(
  context: ErasureContext,
  stream: string,
  grounds: ErasureGrounds,
  actor?: Actor,
): Promise<ErasedStream> {
  const { keys } = context.store;
  let isNoted = false;
  async function note(): Promise<void> {
    if (isNoted) return;
    await yieldFairly(actor);
    await keys.beginErasure(stream, serializeErasureReason(grounds, actor));
    isNoted = true;
  }
  // A repeated erasure writes nothing. Any other is noted even if the log is unavailable afterwards.
  if (!(await isRecorded(context, stream))) await note();
  const target = createErasureTarget(stream, keys);
  const findings = target.decider.initialState;
  // The policy is checked on every attempt, because a hold may have been set in the meantime.
  const load: typeof target.load = async (source) => {
    const loaded = await target.load(source);
    const { last, activity, keys: found } = loaded.state;
    const account_id = actor?.account_id ?? last?.metadata.account_id;
    const { size: live } = found.live;
    await requireGrounds(context, { stream, account_id, ...grounds, last, activity, live });
    if (!isComplete(loaded.state)) await note();
    return loaded;
  };
  const createCommand = ({ state }: LoadedForErasure): AuthoredCommand<Erasure> | undefined =>
    state.last || state.flaw === undefined
      ? { author: authorFor(actor, state.last), command: commandOf(grounds, state) }
      : undefined;
  try {
    const done = describeErasure(await handleLoaded(context, { ...target, load }, createCommand));
    if (done) return done;
  } catch (error) {
    // An erasure that is recorded keeps its note: it is finished once nothing forbids it.
    if (isNoted && (error instanceof Rejection || isTurnlogError(error, 'erasure_refused')))
      await keys.endErasure(stream, []);
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
    await keys.endErasure(stream, [...findings.keys.own]);
    throw unrecordedError(stream, findings, error);
  }
  await keys.endErasure(stream, [...findings.keys.own]);
  throw unrecordedError(stream, findings);
}

/**
 * Destroys the keys of an erased stream, and records that in the audit of its account. An audit that
 * is damaged or has reached its quota does not prevent that: the erased stream records the erasure
 * as well.
 */
export async function endErasure(
  context: ErasureContext,
  { stream, account_id, key_ids }: ErasedStream,
  actor?: Actor,
): Promise<void> {
  await yieldFairly(actor);
  await context.store.keys.endErasure(stream, key_ids);
  // The keys are destroyed: the record of that does not wait for memory.
  await recordAudit(
    { ...context, reserveRead: undefined },
    { ...SYSTEM, ...actor, account_id },
    { action: 'erase', subject: stream },
  ).catch((error: unknown) => {
    if (!isTurnlogError(error, 'stream_damaged') && !isTurnlogError(error, 'quota_exceeded'))
      throw error;
  });
}

/**
 * Permanently erases the texts of a stream: records the erasure and destroys the keys. Idempotent.
 * Throws the errors of recordErasure.
 */
export async function eraseStream(
  context: ErasureContext,
  stream: string,
  grounds: ErasureGrounds,
  actor?: Actor,
): Promise<ErasedStream> {
  const erasure = await recordErasure(context, stream, grounds, actor);
  await endErasure(context, erasure, actor);
  return erasure;
}
