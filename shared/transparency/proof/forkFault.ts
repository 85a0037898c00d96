import type { ForkedFrom } from '../../sessions/events.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { decodeEvent } from '../../eventlog/codec.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { EventLog, StoredEvent } from '../../ports/eventStore.ts';
import { recordedHash } from './nameChange.ts';
import { endedTurnNumber } from '../../sessions/history/origins.ts';

/** True for the first event of a fork. */
export const beginsFork = ({ type, data }: StoredEvent): boolean =>
  type === 'session.started.v1' && data.includes('"forked_from"');

/**
 * Why the first event of a fork does not fit the session that it was forked from: its own chain
 * stands for the turns that it shares only as far as it names the event that ended them. Undefined
 * where it fits. Errors: `store_unavailable`.
 */
export async function forkFault(
  log: Pick<EventLog, 'readStream'>,
  stored: StoredEvent,
): Promise<string | undefined> {
  const { forked_from } = decodeEvent(stored).data as { forked_from?: ForkedFrom };
  if (!forked_from) return undefined;
  const { session_id, turn, revision, hash } = forked_from;
  if (revision === undefined || hash === undefined)
    return 'it does not say after which event it was forked';
  const origin = sessionStream(session_id);
  const [found] = await log
    .readStream(origin, { direction: 'forwards', from: revision, limit: 1 })
    .catch((error: unknown) => {
      // What was deleted or is hidden is missing.
      if (isTurnlogError(error, 'stream_damaged')) return [];
      throw error;
    });
  const which = `revision ${revision} of ${origin}, after which it was forked,`;
  if (found?.revision !== revision) return `${which} is missing`;
  if (recordedHash(found) !== hash) return `${which} has another hash`;
  return endedTurnNumber(found) === turn ? undefined : `${which} does not end turn ${turn}`;
}
