import { Rejection } from '../domain/rejection.ts';
import { errorSummary } from '../lib/errors/errorSummary.ts';
import { isTurnlogError, storeUnavailableError } from '../lib/errors/turnlogError.ts';
import type { Logger } from '../lib/logger.ts';
import { decodeEvent } from '../eventlog/codec.ts';
import { sessionStream, streamId, streamKind } from '../eventlog/streams.ts';
import { LIMITS } from '../limits.ts';
import type { Position } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { Actor } from '../commandHandling/context.ts';
import {
  endErasure,
  eraseStream,
  recordErasure,
  type ErasedStream,
  type ErasureGrounds,
} from './eraseStream.ts';
import type { ErasureContext } from './retention/requireErasable.ts';
import type { DependentQueries } from './retention/requireNotNeeded.ts';

export interface ReplaysContext extends ErasureContext {
  dependentsAt: (position: Position) => Promise<DependentQueries>;
  /** Called for each replay session that is erased along with the requested one. */
  onErased?: ((erased: ErasedStream) => void) | undefined;
  logger: Pick<Logger, 'warn'>;
}

/**
 * How long an erasure in the background waits for the read models, in milliseconds. They show the end of a
 * busy log only once they have been idle for a second.
 */
export const SHOWN_WITHIN_MS = 10_000;

/**
 * Creates `dependentsAt` or `readModelsAt` of a context. They return read models that show all events up to
 * a position, so that no stream is missed, and throw `store_unavailable` after `waitMs`.
 */
export const createUpToDateReader =
  <Queries>(readModels: Queries & Pick<ReadModels, 'untilShown'>, waitMs: number) =>
  async (position: Position): Promise<Queries> => {
    if (await readModels.untilShown(position, waitMs)) return readModels;
    throw storeUnavailableError('The read models do not show yet what has to be erased with it.');
  };

/** An erased session whose replays are erased as well. */
interface ErasedOrigin {
  session_id: string;
  account_id: string;
  grounds: ErasureGrounds;
  actor: Actor | undefined;
}

/**
 * False when the first event of a session says that it is not a replay of the other one, or belongs
 * to another account: rows alone must not decide what is erased. True when it can't be read.
 */
async function mayBeReplayOf(
  { store }: ReplaysContext,
  stream: string,
  origin: { session_id: string; account_id: string },
): Promise<boolean> {
  try {
    const [first] = await store.readStream(stream, { direction: 'forwards', limit: 1 });
    if (!first) return true;
    const { data, metadata } = decodeEvent(first);
    const { replay } = data as { replay?: { session_id?: unknown } };
    return replay?.session_id === origin.session_id && metadata.account_id === origin.account_id;
  } catch (error) {
    if (error instanceof SyntaxError || isTurnlogError(error, 'stream_damaged')) return true;
    throw error;
  }
}

/**
 * Erases one replay of a session. One that can't record it does not keep the session and its other replays
 * from being erased: the keys that were found in it are destroyed.
 */
async function eraseReplay(
  context: ReplaysContext,
  stream: string,
  { grounds, actor }: Pick<ErasedOrigin, 'grounds' | 'actor'>,
): Promise<void> {
  // The erasure has begun: it does not end for lack of memory, or with its request.
  const replayContext = { ...context, minimumIsOver: true, reserveRead: undefined } as const;
  try {
    const erased = await eraseStream(replayContext, stream, grounds, actor);
    context.onErased?.(erased);
  } catch (error) {
    if (!(error instanceof Rejection) && !isTurnlogError(error, 'stream_damaged')) throw error;
    context.logger.warn(
      { ...errorSummary(error), stream },
      'the erasure of a replay could not be recorded',
    );
  }
}

/**
 * Erases the replays of a session page by page. The replays of each replay are erased before it.
 */
async function eraseReplays(
  context: ReplaysContext,
  readModels: Pick<ReadModels, 'listReplaysOf'>,
  { session_id, account_id, ...why }: ErasedOrigin,
): Promise<void> {
  const bounds = { limit: 100, bytes: LIMITS.http.pageBytes };
  let after = '';
  for (let more = true; more;) {
    const page = await readModels.listReplaysOf(session_id, { ...bounds, after });
    for (const { session_id: replay } of page.rows) {
      after = replay;
      const stream = sessionStream(replay);
      if (!(await mayBeReplayOf(context, stream, { session_id, account_id }))) continue;
      await eraseReplays(context, readModels, { session_id: replay, account_id, ...why });
      await eraseReplay(context, stream, why);
    }
    more = page.more;
  }
}

/**
 * Erases a stream. With a session, its replays are erased as well, because they contain its inputs.
 * The erasure ends only after theirs, so that another process finishes it after a crash, or after a hold
 * that was set in between. Throws the errors of eraseStream.
 */
export async function eraseWithReplays(
  context: ReplaysContext,
  stream: string,
  grounds: ErasureGrounds,
  actor?: Actor,
): Promise<ErasedStream> {
  const erasure = await recordErasure(context, stream, grounds, actor);
  if (streamKind(stream) === 'session')
    await eraseReplays(context, await context.dependentsAt(erasure.position), {
      session_id: streamId(stream),
      account_id: erasure.account_id,
      grounds,
      actor,
    });
  await endErasure(context, erasure, actor);
  return erasure;
}
