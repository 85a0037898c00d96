import { sessionErasedError } from '../../erasure/errors.ts';
import { storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { readUntilComplete } from '../../eventlog/reading/readUntilComplete.ts';
import type { DecodedEvent } from '../../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../../limits.ts';
import { sessionNotFoundError, type NumberedPage } from '../queries.ts';
import { readTranscript, type Transcript } from './transcript.ts';
import { readTurn, turnNotFoundError, type TurnLookup, type TurnSource } from '../turns/turn.ts';

/**
 * The revision of the last event of a turn that an account's session recorded; undefined if the
 * read models contain no such ended turn. Checks that the log contains everything that the read
 * models show.
 */
export async function findTurnEndRevision(
  source: TurnSource,
  { account_id, session_id, turn }: TurnLookup,
): Promise<number | undefined> {
  const page = { after: turn - 1, limit: 1, bytes: LIMITS.http.pageBytes };
  const transcript = await source.readModels.findTranscript(account_id, session_id, page);
  if (!transcript) throw sessionNotFoundError();
  const { session, turns } = transcript;
  if (session.status === 'erased') throw sessionErasedError();
  const stream = sessionStream(session_id);
  const [last] = await readUntilComplete(source, stream, {
    read: () => readPage(source, stream, { direction: 'backwards', limit: 1 }),
    findFlaw: ([newest]) => {
      const next = (newest?.recorded.revision ?? -1) + 1;
      if (next > session.revision) return undefined;
      return { reason: `revision ${next} is missing`, revision: next };
    },
  });
  if (last?.event.type === 'session.erased.v1') throw sessionErasedError();
  const row = turns.rows[0];
  const ended = row?.turn === turn && row.status !== 'running';
  return ended ? row.revision : undefined;
}

/** The last event of an ended turn. It identifies the state of the session at that point. */
export interface RecordedTurnEnd {
  /** The session that recorded the turn. For a turn shared by a fork, this is not the fork. */
  session_id: string;
  turn: number;
  revision: number;
  hash: string;
  recorded_at: string;
}

/** The recorded end of a turn. Errors: those of readTurn, and `turn_not_found` for an open turn. */
async function readTurnEnd(source: TurnSource, lookup: TurnLookup): Promise<RecordedTurnEnd> {
  const { session_id, turn, revision, status } = await readTurn(source, lookup);
  if (status === 'running') throw turnNotFoundError('The turn has not ended yet.');
  const stream = sessionStream(session_id);
  const [end] = await readUntilComplete<DecodedEvent[]>(source, stream, {
    read: () => readPage(source, stream, { direction: 'forwards', from: revision, limit: 1 }),
    findFlaw: ([event]) =>
      event ? undefined : { reason: `revision ${revision} is missing`, revision },
  });
  const { hash, recorded_at } = end!.recorded.metadata;
  return { session_id, turn, revision, hash, recorded_at };
}

/**
 * A session as of the end of a turn, and a page of its turns up to that one. Title and labels are
 * the current ones. Errors: those of readTranscript and readTurnEnd, `store_unavailable` while the
 * read models do not show that end.
 */
export async function readTranscriptAt(
  source: TurnSource,
  lookup: TurnLookup,
  page: NumberedPage,
): Promise<Transcript & { at: RecordedTurnEnd }> {
  const { account_id, session_id, turn } = lookup;
  const at = await readTurnEnd(source, lookup);
  const transcript = await readTranscript(source, account_id, session_id, page);
  if (at.session_id === session_id && transcript.session.revision < at.revision)
    throw storeUnavailableError(
      'The turn is recorded, but not visible yet. Try again in a moment.',
    );
  const rows = transcript.turns.rows.filter((row) => row.turn <= turn);
  const more = transcript.turns.more && rows.length > 0 && rows.at(-1)!.turn < turn;
  // A fork is created after its shared turns have ended.
  const { created_at } = transcript.session;
  const updated_at = at.recorded_at > created_at ? at.recorded_at : created_at;
  const session = { ...transcript.session, status: 'idle', turns: turn, updated_at } as const;
  return { ...transcript, session, turns: { rows, more }, at };
}
