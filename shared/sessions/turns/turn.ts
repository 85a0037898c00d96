import { isOwnStream } from '../../eventlog/reading/streamOwner.ts';
import { sessionErasedError } from '../../erasure/errors.ts';
import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import { withReadMemory } from '../../eventlog/reading/readMemory.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { isIdOf, sessionStream } from '../../eventlog/streams.ts';
import type { DecodedEvent } from '../../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../../limits.ts';
import { totalBytesOf } from '../../ports/eventStore.ts';
import { applyTurnEvent, type RecordedPlace, type TurnEvent } from './projection.ts';
import type { TurnRow } from '../../readModels/tables.ts';
import { sessionNotFoundError, type SessionSource } from '../queries.ts';
import { encryptedTextsOf, readTranscript, type TranscriptSource } from '../history/transcript.ts';
import { asOriginErased, findRecordingSession } from '../history/origins.ts';

export type TurnSource = TranscriptSource;

/** A turn of a session, and the account that reads the turn. */
export interface TurnLookup {
  account_id: string;
  session_id: string;
  turn: number;
}

const FIRST_PAGE = 12;
const LATER_PAGE = 64;

export const turnNotFoundError = (message = 'The session has no such turn.'): TurnlogError =>
  new TurnlogError('turn_not_found', message);

/**
 * Checks in the log that the session belongs to the account. Errors: `session_not_found`,
 * `store_unavailable`.
 */
export async function requireSessionOwner(
  { store, readModels }: Pick<SessionSource, 'readModels' | 'store'>,
  accountId: string,
  sessionId: string,
): Promise<void> {
  const stream = sessionStream(sessionId);
  const findRow = () => readModels.findSession(sessionId);
  const isOwn =
    isIdOf('session', sessionId) && (await isOwnStream({ store }, accountId, stream, findRow));
  if (!isOwn) throw sessionNotFoundError();
}

/**
 * Reserves memory for stored events or encrypted texts of this size in all, in place of what it
 * reserved before. The last call is for the texts of the result alone.
 */
type HoldBytes = (bytes: number) => void;

const storedBytes = (row: TurnRow): number =>
  encryptedTextsOf(row).reduce((sum, { length }) => sum + length, 0);

/** Read models that reserve memory for the texts of turns before they are decrypted. */
const holdingTexts = (
  { findSession, findTranscript }: TurnSource['readModels'],
  hold: HoldBytes,
): TurnSource['readModels'] => ({
  findSession,
  async findTranscript(...args) {
    const transcript = await findTranscript(...args);
    if (transcript) hold(transcript.turns.rows.reduce((sum, row) => sum + storedBytes(row), 0));
    return transcript;
  },
});

/** The turn with its texts, if the read models contain it. */
async function findVisibleTurn(
  source: TurnSource,
  { account_id, session_id, turn }: TurnLookup,
  hold: HoldBytes,
): Promise<TurnRow | undefined> {
  const page = { after: turn - 1, limit: 1, bytes: LIMITS.http.pageBytes };
  const holding = { ...source, readModels: holdingTexts(source.readModels, hold) };
  try {
    const { turns } = await readTranscript(holding, account_id, session_id, page);
    return turns.rows[0]?.turn === turn ? turns.rows[0] : undefined;
  } catch (error) {
    if (isTurnlogError(error, 'session_not_found')) return undefined;
    if (isTurnlogError(error, 'store_unavailable')) return undefined;
    throw error;
  }
}

/** The turn number of an event; undefined for an event of the session itself. */
const turnNumberIn = ({ event }: DecodedEvent): number | undefined =>
  (event.data as { turn?: number }).turn;

/** An event without its stored form, which is as large as its texts. */
interface PlacedEvent {
  place: RecordedPlace;
  event: TurnEvent;
}

const placedEvent = ({ recorded, event }: DecodedEvent): PlacedEvent => {
  const { stream, revision, position, metadata } = recorded;
  return { place: { stream, revision, position, metadata }, event: event as TurnEvent };
};

/** Builds a turn's row from its events, starting with turn_started. */
const turnRowFrom = (events: readonly PlacedEvent[]): TurnRow =>
  events.reduce<TurnRow | undefined>(
    (row, { place, event }) => applyTurnEvent(row, place, event),
    undefined,
  )!;

/**
 * One turn of a session, with its texts. The turn is read from the log, which contains every
 * acknowledged event. An old turn is read from the read models unless they lag. The read models may
 * also be ahead of a lagging cluster node. A turn shared by a fork is read from the session that
 * recorded it. Errors: `session_not_found` (also for another account's session), `turn_not_found`,
 * `session_erased`, `origin_erased`, `stream_damaged`, `release_too_old`, `key_missing`,
 * `store_unavailable`; those of `hold`.
 */
export const readTurn = (
  source: TurnSource,
  lookup: TurnLookup,
  hold: HoldBytes = () => undefined,
): Promise<TurnRow> => withReadMemory(source, () => findTurn(source, lookup, hold));

async function findTurn(source: TurnSource, lookup: TurnLookup, hold: HoldBytes): Promise<TurnRow> {
  const { account_id, session_id, turn } = lookup;
  // Before anything is read of a session that may be another account's.
  await requireSessionOwner(source, account_id, session_id);
  const stream = sessionStream(session_id);
  const maxBytes = LIMITS.store.pageBytes;
  let events: PlacedEvent[] = [];
  let heldBytes = 0;
  let from: number | undefined;
  for (let limit = FIRST_PAGE; ; limit = LATER_PAGE) {
    const start = from === undefined ? {} : { from };
    const options = { direction: 'backwards', limit, maxBytes, ...start } as const;
    const page = await readPage(source, stream, options);
    hold(heldBytes + totalBytesOf(page.map(({ stored }) => stored)));
    const last = page.at(-1);
    if (from === undefined && last) {
      if (last.recorded.metadata.account_id !== account_id) throw sessionNotFoundError();
      if (last.event.type === 'session.erased.v1') throw sessionErasedError();
    }
    const ofTurn = page.filter((event) => turnNumberIn(event) === turn);
    events = [...ofTurn.map(placedEvent), ...events];
    heldBytes += totalBytesOf(ofTurn.map(({ stored }) => stored));
    if (events[0]?.event.type === 'session.turn_started.v1') {
      hold(heldBytes);
      return turnRowFrom(events);
    }
    const first = page[0]?.recorded.revision ?? 0;
    const beginning = first === 0 ? page[0] : undefined;
    const recorder = beginning && (await findRecordingSession(source, beginning, turn));
    if (recorder)
      return findTurn(source, { ...lookup, session_id: recorder }, hold).catch((error: unknown) => {
        throw asOriginErased(error);
      });
    const visibleTurn =
      events.length === 0 ? await findVisibleTurn(source, lookup, hold) : undefined;
    const newest = page.findLast((event) => turnNumberIn(event) !== undefined);
    const isAhead = from === undefined && (newest ? turnNumberIn(newest)! : 0) < turn;
    if (visibleTurn && (isAhead || visibleTurn.status !== 'running')) return visibleTurn;
    if (!last && from === undefined) throw sessionNotFoundError();
    if (isAhead || first === 0) throw turnNotFoundError();
    from = first - 1;
  }
}
