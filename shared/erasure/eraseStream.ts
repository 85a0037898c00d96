import { headOf } from '../eventlog/append.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import type { Erasure } from '../domain/schema.ts';
import { Rejection } from '../domain/rejection.ts';
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
export type Grounds = Pick<Erasure, 'reason'> & { note?: string | undefined };

/** Why an erasure was begun, for the process that finishes it. */
interface ErasureReason {
  grounds: Grounds;
  /** The actor that began it; undefined for the system. */
  actor: Actor | undefined;
}

/** As text, for the key store, which keeps it until the erasure is done. */
export const serializeErasureReason = (
  { reason, note }: Grounds,
  { account_id, key_id, request_id }: Partial<Actor> = {},
): string => JSON.stringify({ reason, note, account_id, key_id, request_id });

export function parseErasureReason(text: string): ErasureReason {
  const { reason, note, ...actor } = JSON.parse(text) as Grounds & Partial<Actor>;
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
  /** True when the stream was erased before. */
  again: boolean;
  key_ids: string[];
  /** A clause that says what of a damaged stream could not be read; undefined when all could. */
  unread: string | undefined;
}

/** The author when another process finishes an erasure. */
const SYSTEM = { key_id: 'system', request_id: 'recovery' };

const commandOf = ({ reason, note }: Grounds, { keyIds }: LoadedForErasure['state']): Erasure => ({
  reason,
  ...(note !== undefined && { note }),
  key_ids: [...keyIds],
});

/** The decider refuses a stream without events, so the author of that case does not matter. */
const authorFor = (actor: Actor | undefined, last: RecordedEvent | undefined): Author =>
  actor
    ? authorOf(actor)
    : { ...SYSTEM, account_id: last?.metadata.account_id ?? '', causation_id: last?.id ?? '' };

/** The erasure as the log has it; undefined when nothing of the stream can be read. */
function describeErasure({
  loaded,
  appended,
}: HandleResult<LoadedForErasure>): ErasedStream | undefined {
  const { stream, keyIds, last, flaw } = loaded.state;
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
    key_ids: [...keyIds],
    unread: flaw,
  };
}

/** The keys that were found are destroyed; the rows of the stream stay. */
const unrecordedError = (
  stream: string,
  { keyIds, flaw }: ErasureFindings,
  cause?: unknown,
): TurnlogError =>
  new TurnlogError(
    'stream_damaged',
    `The erasure of ${stream} can't be recorded, because its stream is damaged: ${flaw ?? 'the store takes nothing more'}. The keys that were found in it (${keyIds.size}) are destroyed; an agent's or account's texts \`projections rebuild\` takes out of the read models.`,
    { cause },
  );

/**
 * Records the erasure of a stream's texts, once; `endErasure` then destroys the keys. Without an
 * actor the author is the system. A damaged stream is erased as far as it can be read.
 */
export async function recordErasure(
  context: ErasureContext,
  stream: string,
  grounds: Grounds,
  actor?: Actor,
): Promise<ErasedStream> {
  const { keys } = context.store;
  await keys.beginErasure(stream, serializeErasureReason(grounds, actor));
  const target = createErasureTarget(stream);
  const findings = target.decider.initialState;
  // On every attempt: a hold may have been set meanwhile.
  const load: typeof target.load = async (source) => {
    const loaded = await target.load(source);
    const { last } = loaded.state;
    const account_id = actor?.account_id ?? last?.metadata.account_id ?? '';
    if (last && !context.goesAlong)
      await requireGrounds(context, { stream, account_id, ...grounds, last });
    return loaded;
  };
  const order = ({ state }: LoadedForErasure): AuthoredCommand<Erasure> | undefined =>
    state.last || state.flaw === undefined
      ? { author: authorFor(actor, state.last), command: commandOf(grounds, state) }
      : undefined;
  try {
    const done = describeErasure(await handleLoaded(context, { ...target, load }, order));
    if (done) return done;
  } catch (error) {
    if (error instanceof Rejection || isTurnlogError(error, 'erasure_refused'))
      await keys.endErasure(stream, []);
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
    await keys.endErasure(stream, [...findings.keyIds]);
    throw unrecordedError(stream, findings, error);
  }
  await keys.endErasure(stream, [...findings.keyIds]);
  throw unrecordedError(stream, findings);
}

/**
 * Destroys the keys of an erased stream, and records that in the audit of its account. A damaged
 * audit is reported by health and ignored here: the erased stream records the erasure as well.
 */
export async function endErasure(
  context: ErasureContext,
  { stream, account_id, key_ids }: ErasedStream,
  actor?: Actor,
): Promise<void> {
  await context.store.keys.endErasure(stream, key_ids);
  await recordAudit(
    context,
    { ...SYSTEM, ...actor, account_id },
    { action: 'erase', subject: stream },
  ).catch((error: unknown) => {
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
  });
}

/**
 * Erases the texts of a stream for good: records it, and destroys the keys. Idempotent. Errors: those of recordErasure.
 */
export async function eraseStream(
  context: ErasureContext,
  stream: string,
  grounds: Grounds,
  actor?: Actor,
): Promise<ErasedStream> {
  const erasure = await recordErasure(context, stream, grounds, actor);
  await endErasure(context, erasure, actor);
  return erasure;
}
