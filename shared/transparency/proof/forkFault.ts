import { readPresentEvents } from '../../eventlog/reading/readPresentEvents.ts';
import { recordedHash } from '../../eventlog/hashChain.ts';
import type { ForkedFrom } from '../../sessions/events.ts';
import { decodeEvent } from '../../eventlog/codec.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { EventLog, StoredEvent } from '../../ports/eventStore.ts';
import { endedTurnNumber } from '../../sessions/history/origins.ts';

/** True for the first event of a fork. */
export const beginsFork = ({ type, data }: StoredEvent): boolean =>
  type === 'session.started.v1' && data.includes('"forked_from"');

/**
 * Describes how the first event of a fork differs from the session that it was forked from;
 * undefined when it matches. The hash chain of a fork covers the shared turns only through the
 * event that ended them, which the first event of the fork names.
 */
export async function findForkFault(
  log: Pick<EventLog, 'readStream'>,
  stored: StoredEvent,
): Promise<string | undefined> {
  const { forked_from } = decodeEvent(stored).data as { forked_from?: ForkedFrom };
  if (!forked_from) return undefined;
  const { session_id, turn, revision, hash } = forked_from;
  if (revision === undefined || hash === undefined)
    return 'it does not say after which event it was forked';
  const origin = sessionStream(session_id);
  const page = { direction: 'forwards', from: revision, limit: 1 } as const;
  const [forkEvent] = await readPresentEvents(log, origin, page);
  const forkPoint = `revision ${revision} of ${origin}, after which it was forked,`;
  if (forkEvent?.revision !== revision) return `${forkPoint} is missing`;
  if (recordedHash(forkEvent) !== hash) return `${forkPoint} has another hash`;
  return endedTurnNumber(forkEvent) === turn ? undefined : `${forkPoint} does not end turn ${turn}`;
}
