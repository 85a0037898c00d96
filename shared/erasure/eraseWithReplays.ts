import { storeUnavailableError } from '../lib/errors/turnlogError.ts';
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
  type Grounds,
} from './eraseStream.ts';
import type { ErasureContext } from './retention/requireErasable.ts';

type Replays = Pick<ReadModels, 'listReplaysOf'>;

export interface ReplaysContext extends ErasureContext {
  /** Read models that show the position, or a later one. */
  replaysAt: (position: Position) => Promise<Replays>;
  /** Told of each session that goes with the one that was asked for. */
  onErased?: ((erased: ErasedStream) => void) | undefined;
}

/** What shows where replays of a session are, as ReplaysContext has it. */
export const readReplaysAt =
  (readModels: Replays & Pick<ReadModels, 'untilShown'>, waitMs: number) =>
  async (position: Position): Promise<Replays> => {
    if (await readModels.untilShown(position, waitMs)) return readModels;
    throw storeUnavailableError(
      'The read models do not show which replays go with the session yet.',
    );
  };

/** One page after the other, each session after those that replays made of it. */
async function eraseReplays(
  context: ReplaysContext,
  readModels: Replays,
  { session_id, grounds, actor }: { session_id: string; grounds: Grounds; actor?: Actor },
): Promise<void> {
  const bounds = { limit: 100, bytes: LIMITS.http.pageBytes };
  let after = '';
  for (let more = true; more;) {
    const page = await readModels.listReplaysOf(session_id, { ...bounds, after });
    for (const { session_id: replay } of page.rows) {
      await eraseReplays(context, readModels, {
        session_id: replay,
        grounds,
        ...(actor && { actor }),
      });
      const along = { ...context, goesAlong: true } as const;
      const erased = await eraseStream(along, sessionStream(replay), grounds, actor);
      context.onErased?.(erased);
      after = replay;
    }
    more = page.more;
  }
}

/**
 * Erases a stream, and with a session those that replays made of it: they hold its inputs. The
 * erasure is not at its end before they are erased, so that somebody goes on with it.
 * Errors: those of eraseStream.
 */
export async function eraseWithReplays(
  context: ReplaysContext,
  stream: string,
  grounds: Grounds,
  actor?: Actor,
): Promise<ErasedStream> {
  const erasure = await recordErasure(context, stream, grounds, actor);
  if (streamKind(stream) === 'session')
    await eraseReplays(context, await context.replaysAt(erasure.position), {
      session_id: streamId(stream),
      grounds,
      ...(actor && { actor }),
    });
  await endErasure(context, erasure, actor);
  return erasure;
}
