import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { decodeEvent } from '../../eventlog/codec.ts';
import type { RecordedEvent } from '../../eventlog/event.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { EventStore, StoredEvent } from '../../ports/eventStore.ts';
import type { TileReader } from '../tileStore.ts';
import type { PageOf } from '../../ports/readModels.ts';
import { proveEvent, type EventProof, type ProvenEvent } from './proveEvent.ts';
import {
  findOwnSession,
  readCommitments,
  type NumberedPage,
  type SessionSource,
} from '../../sessions/queries.ts';

/** How long a response waits for a checkpoint that covers the event. */
const WAIT_MS = 1_500;

/** The last event of a stream with the proof that it is in the log. */
export interface HeadProof extends EventProof {
  revision: number;
  event_id: string;
}

/** Reads the last event of a session's stream. Throws `session_not_found`. */
export async function headOfSession(
  store: Pick<EventStore, 'readStream'>,
  sessionId: string,
): Promise<StoredEvent> {
  const [head] = await store.readStream(sessionStream(sessionId), {
    direction: 'backwards',
    limit: 1,
  });
  if (!head) throw new TurnlogError('session_not_found', 'There is no such session.');
  return head;
}

/** The position and hash of a stored event. */
export const provenOf = (stored: StoredEvent): ProvenEvent => ({
  position: stored.position,
  hash: decodeEvent(stored).metadata.hash,
});

/**
 * Proves the last event of an account's session, and reads a page of the events up to it without
 * their texts. Errors: `session_not_found`, `proof_pending`, those of `readCommitments`.
 */
export async function proveSession(
  source: SessionSource & { tiles: TileReader },
  accountId: string,
  sessionId: string,
  page: NumberedPage,
): Promise<{ head: HeadProof; events: PageOf<RecordedEvent> }> {
  const row = await findOwnSession(source, accountId, sessionId);
  const last = await headOfSession(source.store, sessionId);
  const proof = await proveEvent(source.tiles, provenOf(last), WAIT_MS);
  const { rows, more } = await readCommitments(source, row, page);
  // The proof does not cover events that were appended in the meantime.
  const proven = rows.filter(({ revision }) => revision <= last.revision);
  return {
    head: { ...proof, revision: last.revision, event_id: last.id },
    events: { rows: proven, more: more && proven.length === rows.length },
  };
}
