import { TurnlogError } from '../errors.ts';
import { decodeEvent } from '../eventlog/codec.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { StoredEvent } from '../ports/eventStore.ts';
import type { TileReader } from '../ports/tileStore.ts';
import { proveEvent, type EventProof } from '../proof/proveEvent.ts';
import type { StreamSource } from '../eventlog/readWhole.ts';

/** How long an answer waits for a checkpoint that covers what it proves. */
const WAIT_MS = 1_500;

/** The last event of a stream, and the proof that it is in the log. */
export interface HeadProof extends EventProof {
  revision: number;
  event_id: string;
}

/** The last event of a session's stream. Errors: `session_not_found`, those of the store. */
export async function headOfSession(
  store: Pick<StreamSource['store'], 'readStream'>,
  sessionId: string,
): Promise<StoredEvent> {
  const [head] = await store.readStream(sessionStream(sessionId), {
    direction: 'backwards',
    limit: 1,
  });
  if (!head) throw new TurnlogError('session_not_found', 'There is no such session.');
  return head;
}

/** A stored event as something to be proven. */
export const provenOf = (stored: StoredEvent) => ({
  position: stored.position,
  hash: decodeEvent(stored).metadata.hash,
});

/**
 * Proves the last event of a session: whoever asks has made sure whose it is. Errors:
 * `proof_pending`, `session_not_found`, those of the store.
 */
export async function proveSession(
  { store, tiles }: { store: Pick<StreamSource['store'], 'readStream'>; tiles: TileReader },
  sessionId: string,
): Promise<HeadProof> {
  const head = await headOfSession(store, sessionId);
  const proof = await proveEvent(tiles, provenOf(head), WAIT_MS);
  return { ...proof, revision: head.revision, event_id: head.id };
}
