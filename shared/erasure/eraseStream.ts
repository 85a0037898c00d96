import { headOf } from '../eventlog/append.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import type { Erasure } from '../domain/schema.ts';
import { Rejection } from '../domain/rejection.ts';
import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import type { Position } from '../ports/eventStore.ts';
import { recordAudit } from '../audit/commands.ts';
import { authorOf, type Author } from '../commandHandling/recordEvents.ts';
import type { Actor } from '../commandHandling/context.ts';
import { handleFound, type Handled, type Order } from '../commandHandling/handle.ts';
import { requireGrounds, type ErasureContext } from './retention/requireErasable.ts';
import {
  createErasureTarget,
  type ErasureFindings,
  type LoadedForErasure,
} from './readForErasure.ts';
import { serializeErasureReason, type Grounds } from './erasureReason.ts';

/** An erasure that stands in the log. */
export interface ErasedStream {
  stream: string;
  account_id: string;
  event: { id: string; revision: number; hash: string };
  /** UTC, ISO 8601. */
  erased_at: string;
  position: Position;
  /** True where it was there before. */
  again: boolean;
  key_ids: string[];
  /** Half a sentence on what of a damaged stream could not be read; undefined where all was. */
  unread: string | undefined;
}

/** Who goes on with an erasure that somebody else has left. */
const SYSTEM = { key_id: 'system', request_id: 'recovery' };

const commandOf = ({ reason, note }: Grounds, { keyIds }: LoadedForErasure['state']): Erasure => ({
  reason,
  ...(note !== undefined && { note }),
  key_ids: [...keyIds],
});

/** A stream that has no event is refused by its decider, whoever asks. */
const authorFor = (actor: Actor | undefined, last: RecordedEvent | undefined): Author =>
  actor
    ? authorOf(actor)
    : { ...SYSTEM, account_id: last?.metadata.account_id ?? '', causation_id: last?.id ?? '' };

/** What the log says now; undefined where nothing of the stream can be read. */
function erased({ found, appended }: Handled<LoadedForErasure>): ErasedStream | undefined {
  const { stream, keyIds, last, flaw } = found.state;
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

/** The keys that could be found are gone; what the read models show of the stream is not. */
const unrecorded = (
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
 * Says in the log of a stream that its texts are erased, once; `endErasure` then destroys its keys.
 * Without an actor the author is the system. Of a damaged stream, what can be read is enough.
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
  // Each time that the stream is read: a hold may have been set meanwhile.
  const load: typeof target.load = async (source) => {
    const found = await target.load(source);
    const { last } = found.state;
    const account_id = actor?.account_id ?? last?.metadata.account_id ?? '';
    if (last && !context.goesAlong)
      await requireGrounds(context, { stream, account_id, ...grounds, last });
    return found;
  };
  const order = ({ state }: LoadedForErasure): Order<Erasure> | undefined =>
    state.last || state.flaw === undefined
      ? { author: authorFor(actor, state.last), command: commandOf(grounds, state) }
      : undefined;
  try {
    const done = erased(await handleFound(context, { ...target, load }, order));
    if (done) return done;
  } catch (error) {
    if (error instanceof Rejection || isTurnlogError(error, 'erasure_refused'))
      await keys.endErasure(stream, []);
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
    await keys.endErasure(stream, [...findings.keyIds]);
    throw unrecorded(stream, findings, error);
  }
  await keys.endErasure(stream, [...findings.keyIds]);
  throw unrecorded(stream, findings);
}

/**
 * Destroys the keys of what was erased, and notes that in the audit of its account. A damaged
 * audit, which health names then, does not undo what is done, and the log of what was erased says
 * it too.
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
 * Erases the texts of a stream for good: its log says so, and its keys are gone. Doing it again
 * changes nothing. Errors: those of recordErasure.
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
