import { sessionErasedError } from '../../erasure/errors.ts';
import { storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { untilWhole } from '../../eventlog/reading/untilWhole.ts';
import type { KnownEvent } from '../../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../../limits.ts';
import { sessionNotFound, type NumberedPage } from '../queries.ts';
import { readTranscript, type Transcript } from './transcript.ts';
import { readTurn, turnNotFound, type TurnLookup, type TurnSource } from '../turns/turn.ts';

/**
 * The revision of the last event of a turn that an account's session recorded, once the log shows
 * what the read models have seen of the session; undefined where they know of none.
 */
export async function findTurnEndRevision(
  source: TurnSource,
  { account_id, session_id, turn }: TurnLookup,
): Promise<number | undefined> {
  const page = { after: turn - 1, limit: 1, bytes: LIMITS.http.pageBytes };
  const found = await source.readModels.findTranscript(account_id, session_id, page);
  if (!found) throw sessionNotFound();
  const { session, turns } = found;
  if (session.status === 'erased') throw sessionErasedError();
  const stream = sessionStream(session_id);
  const [last] = await untilWhole(source, stream, {
    look: () => readPage(source, stream, { direction: 'backwards', limit: 1 }),
    missing: ([newest]) => {
      const due = (newest?.recorded.revision ?? -1) + 1;
      if (due > session.revision) return undefined;
      return { reason: `revision ${due} is missing`, revision: due };
    },
  });
  if (last?.event.type === 'session.erased.v1') throw sessionErasedError();
  const row = turns.rows[0];
  const ended = row?.turn === turn && row.status !== 'running';
  return ended ? row.revision : undefined;
}

/** The last event of a turn that has ended: what names the session as it stood then. */
export interface RecordedTurnEnd {
  /** That recorded it: of a turn that a fork shares, another one. */
  session_id: string;
  turn: number;
  revision: number;
  hash: string;
  recorded_at: string;
}

/**
 * The end of a turn, as it is recorded. Errors: those of readTurn, `turn_not_found` also while it is
 * open.
 */
export async function readTurnEnd(source: TurnSource, asked: TurnLookup): Promise<RecordedTurnEnd> {
  const { session_id, turn, revision, status } = await readTurn(source, asked);
  if (status === 'running') throw turnNotFound('The turn has not ended yet.');
  const stream = sessionStream(session_id);
  const [end] = await untilWhole<KnownEvent[]>(source, stream, {
    look: () => readPage(source, stream, { direction: 'forwards', from: revision, limit: 1 }),
    missing: ([found]) =>
      found ? undefined : { reason: `revision ${revision} is missing`, revision },
  });
  const { hash, recorded_at } = end!.recorded.metadata;
  return { session_id, turn, revision, hash, recorded_at };
}

/**
 * A session as it stood when a turn had ended, and a page of its turns up to that one; title and
 * labels are those of now. Errors: those of readTranscript and of endOfTurn, `store_unavailable` where
 * the read models do not show that end yet.
 */
export async function readTranscriptAt(
  source: TurnSource,
  asked: TurnLookup,
  page: NumberedPage,
): Promise<Transcript & { at: RecordedTurnEnd }> {
  const { account_id, session_id, turn } = asked;
  const at = await readTurnEnd(source, asked);
  const found = await readTranscript(source, account_id, session_id, page);
  if (at.session_id === session_id && found.session.revision < at.revision)
    throw storeUnavailableError('The turn is recorded, and not shown yet. Try again in a moment.');
  const rows = found.turns.rows.filter((row) => row.turn <= turn);
  const more = found.turns.more && rows.length > 0 && rows.at(-1)!.turn < turn;
  // A fork began after the turns that it shares had ended.
  const { created_at } = found.session;
  const updated_at = at.recorded_at > created_at ? at.recorded_at : created_at;
  const session = { ...found.session, status: 'idle', turns: turn, updated_at } as const;
  return { ...found, session, turns: { rows, more }, at };
}
