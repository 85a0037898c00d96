import { createPause } from '../../lib/concurrency/yieldToEventLoop.ts';
import { isTurnlogError, type TurnlogError } from '../../lib/errors/turnlogError.ts';
import { decodeEvent } from '../../eventlog/codec.ts';
import type { RecordedEvent } from '../../eventlog/event.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { EventStore, StoredEvent } from '../../ports/eventStore.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { reportDamage } from '../../eventlog/reading/reportDamage.ts';
import { readUntilComplete } from '../../eventlog/reading/readUntilComplete.ts';
import type { SessionRow } from '../../readModels/tables.ts';
import { NO_LEAF } from '../leaves/leafComparison.ts';
import { createSingleProver, type LeafProof, type ProvenEvent } from '../leaves/leafProver.ts';
import type { TileReader } from '../tileStore.ts';
import { parseCheckpoint } from '../tlog/checkpoint.ts';
import { parseNote } from '../tlog/note.ts';
import type { PageOf } from '../../ports/readModels.ts';
import { proveEvent, type EventProof } from './proveEvent.ts';
import {
  findOwnSession,
  readCommitments,
  type NumberedPage,
  type SessionSource,
  sessionNotFoundError,
} from '../../sessions/queries.ts';

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
  if (!head) throw sessionNotFoundError();
  return head;
}

/** The position and hash of a stored event. */
export const toProvenEvent = (stored: StoredEvent): ProvenEvent => ({
  position: stored.position,
  hash: decodeEvent(stored).metadata.hash,
});

/** An event, and its leaf under the checkpoint of its page. */
export interface IncludedEvent {
  event: RecordedEvent;
  leaf: LeafProof;
}

/** The last event of a stream that the read models show up to a revision. */
async function readLast(
  source: SessionSource,
  { session_id, revision: visibleRevision }: SessionRow,
): Promise<StoredEvent> {
  const stream = sessionStream(session_id);
  const [last] = await readUntilComplete(source, stream, {
    read: () => readPage(source, stream, { direction: 'backwards', limit: 1 }),
    findFlaw([found]) {
      if (!found) return { reason: 'its events are gone', revision: 0 };
      const next = found.stored.revision + 1;
      return next > visibleRevision
        ? undefined
        : { reason: `revision ${next} is missing`, revision: next };
    },
  });
  return last!.stored;
}

type ProofSource = SessionSource & { tiles: TileReader };

/** A page of a session's events with their proofs, and the proof of its last event. */
interface ProvenPage {
  head: HeadProof;
  events: PageOf<IncludedEvent>;
}

async function provePage(
  source: ProofSource,
  row: SessionRow,
  page: NumberedPage,
): Promise<ProvenPage> {
  const { tiles } = source;
  const stream = sessionStream(row.session_id);
  const damaged = (revision: number): Promise<TurnlogError> =>
    reportDamage(source, stream, {
      reason: `the event at revision ${revision} ${NO_LEAF}`,
      revision,
    });
  const last = await readLast(source, row);
  const proof = await proveEvent(tiles, toProvenEvent(last));
  if (!proof) throw await damaged(last.revision);
  const { rows, more } = await readCommitments(source, row, page);
  const prove = createSingleProver(tiles, parseCheckpoint(parseNote(proof.checkpoint).text));
  const included: IncludedEvent[] = [];
  const pause = createPause(() => row.account_id);
  for (const event of rows) {
    await pause();
    // The proof does not cover events that were appended in the meantime.
    if (event.revision > last.revision) break;
    const leaf = await prove({ position: event.position, hash: event.metadata.hash });
    if (!leaf) throw await damaged(event.revision);
    included.push({ event, leaf });
  }
  return {
    head: { ...proof, revision: last.revision, event_id: last.id },
    events: { rows: included, more: more && included.length === rows.length },
  };
}

/**
 * Proves the last event of an account's session, and reads a page of the events up to it without
 * their texts, each with the proof that it is in the tree of the same checkpoint. Errors:
 * `session_not_found`, `proof_pending`, those of `readCommitments`; `stream_damaged` (noted) also
 * for an event that does not fit its hash, has no leaf, or has one that does not lead to the
 * checkpoint.
 */
export async function proveSession(
  source: ProofSource,
  accountId: string,
  sessionId: string,
  page: NumberedPage,
): Promise<ProvenPage> {
  const row = await findOwnSession(source, accountId, sessionId);
  try {
    return await provePage(source, row, page);
  } catch (error) {
    if (!isTurnlogError(error, 'proof_invalid')) throw error;
    throw await reportDamage(source, sessionStream(sessionId), {
      reason: `it can't be proven. ${error.message}`,
      revision: row.revision,
    });
  }
}
