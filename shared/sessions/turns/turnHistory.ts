import {
  oldestTurnOf,
  collectRecordedCalls,
  turnNumberOf,
  type SummaryReference,
  type RecordedCalls,
} from './requests.ts';
import type { SessionEvent } from '../events.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { streamId, sessionStream } from '../../eventlog/streams.ts';
import type { DecodedEvent } from '../../eventlog/reading/wholeStream.ts';
import { bytesOf, totalBytesOf } from '../../ports/eventStore.ts';
import { turnNotFoundError } from './turn.ts';
import { createBackwardTurns } from '../history/backwardTurns.ts';
import { sessionEvents } from '../history/loadSession.ts';
import type { Turn } from './prompt.ts';
import { createBackwardReader } from '../history/readBackwards.ts';
import { originErasedError, sessionErasedError } from '../../erasure/errors.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';

/** Throws if an erasure removed texts of the session or of a session whose turns it shares. */
function requireTexts(page: readonly DecodedEvent[], sessionId: string): void {
  const emptied = page.find(({ recorded }) => recorded.erased)?.recorded;
  if (!emptied) return;
  throw emptied.stream === sessionStream(sessionId) ? sessionErasedError() : originErasedError();
}

/**
 * Yields the events of a session from a revision, or from its newest event, back to its beginning,
 * in pages. The newest page comes first, and each page is sorted oldest first. For a fork,
 * continues in the sessions whose turns it shares.
 */
async function* readHistoryBackwards(
  source: StreamSource,
  sessionId: string,
  revision?: number,
): AsyncGenerator<DecodedEvent[], void> {
  const reader = createBackwardReader(source, sessionId, { revision });
  do {
    const page = await reader.readOlder();
    requireTexts(page, sessionId);
    if (page.length === 0) return;
    yield page;
  } while (!reader.isWhole());
}

/** The session and revision of an event with a summary. */
interface SummaryLocation {
  session_id: string;
  revision: number;
}

/** The summary in an event, for the session whose requests contain it. */
async function readSummaryAt(
  source: StreamSource,
  sessionId: string,
  { session_id, revision }: SummaryLocation,
): Promise<string | undefined> {
  const range = { direction: 'forwards', from: revision, limit: 1 } as const;
  const page = await readPage(source, sessionStream(session_id), range);
  requireTexts(page, sessionId);
  const event = page[0]?.event;
  return event?.type === 'session.compacted.v1' ? event.data.summary : undefined;
}

/** An event and its location. For a fork, the event may be in a session whose turns it shares. */
interface LocatedEvent extends SummaryLocation {
  event: SessionEvent;
}

/** The source of a turn's rebuilt requests. */
interface TurnHistory {
  /** The completed turns before the turn, oldest first, back to the oldest one in its requests. */
  turns: readonly Turn[];
  recorded: RecordedCalls;
  /** Approximate size of the turns and of the turn's own events. */
  bytes: number;
  /** The summary for a reference. */
  summaryOf: (reference: SummaryReference) => { text: string } | undefined;
}

/** A turn in the session that recorded it. */
interface OwnTurn {
  session_id: string;
  turn: number;
  /** Revision of the turn's last event; undefined if the turn may not have ended. */
  revision: number | undefined;
}

/** Overhead of a turn beside its texts, in bytes. */
const TURN_OVERHEAD = 512;

/** The size of a turn without its tool calls. */
const bytesOfTurn = ({ input, output = '' }: Turn): number =>
  TURN_OVERHEAD + Buffer.byteLength(input) + Buffer.byteLength(output);

/** The stored size of the tool calls of earlier turns: those of one turn may fill many pages. */
const bytesOfEarlierCalls = (page: readonly DecodedEvent[], turn: number): number =>
  totalBytesOf(
    page
      .filter(({ event }) => event.type === 'session.tool_called.v1' && event.data.turn < turn)
      .map(({ stored }) => stored),
  );

/**
 * Collects, from pages that are read backwards, the events of a turn and the compactions right before
 * it.
 */
function createOwnEvents(turn: number) {
  const newestFirst: LocatedEvent[] = [];
  let hasEarlierTurn = false;
  return {
    /** Adds an older page. Returns the stored size of what it keeps of it. */
    add(page: readonly DecodedEvent[]): number {
      let bytes = 0;
      for (const { recorded, event: known, stored } of page.toReversed()) {
        const event = known as SessionEvent;
        const number = turnNumberOf(event);
        hasEarlierTurn ||= number !== undefined && number < turn;
        const isBetween = event.type === 'session.compacted.v1' && newestFirst.length > 0;
        if (hasEarlierTurn || !(number === turn || isBetween)) continue;
        const { stream, revision } = recorded;
        newestFirst.push({ session_id: streamId(stream), revision, event });
        bytes += bytesOf(stored);
      }
      return bytes;
    },
    all: (): LocatedEvent[] => newestFirst.toReversed(),
  };
}

/** True if an event is older than a turn. */
const isBefore = (event: SessionEvent, turn: number): boolean =>
  event.type === 'session.started.v1'
    ? (event.data.forked_from?.turn ?? 0) < turn
    : (turnNumberOf(event) ?? turn) < turn;

const eventsOf = (located: readonly LocatedEvent[]): SessionEvent[] =>
  located.map(({ event }) => event);

const isAt = (a: SummaryLocation, b: SummaryLocation): boolean =>
  a.session_id === b.session_id && a.revision === b.revision;

/** Finds the summaries that the requests contain. */
async function findSummaries(
  source: StreamSource,
  sessionId: string,
  {
    events,
    recorded: { started, compactions },
  }: { events: LocatedEvent[]; recorded: RecordedCalls },
): Promise<TurnHistory['summaryOf']> {
  const summaries: (SummaryLocation & { text: string })[] = [];
  const locationOf = ({ summary_revision, summary_session_id }: SummaryReference) =>
    summary_revision === undefined
      ? undefined
      : { session_id: summary_session_id ?? sessionId, revision: summary_revision };
  const summaryOf = (reference: SummaryReference) => {
    const location = locationOf(reference);
    return location && summaries.find((summary) => isAt(summary, location));
  };
  const summaryReferences = started.context?.compacted === undefined ? [] : [started];
  for (const reference of [...compactions, ...summaryReferences]) {
    const location = locationOf(reference);
    if (!location || summaryOf(reference)) continue;
    const event = events.find((located) => isAt(located, location))?.event;
    const text =
      event?.type === 'session.compacted.v1'
        ? event.data.summary
        : await readSummaryAt(source, sessionId, location);
    if (text !== undefined) summaries.push({ ...location, text });
  }
  return summaryOf;
}

/**
 * Reads a turn, and the earlier turns that its requests contain, in pages. Only the texts of earlier
 * turns are kept. Reserves memory for them and for the page in progress.
 */
export async function readTurnHistory(
  source: StreamSource,
  { session_id, turn, revision }: OwnTurn,
  reserveBytes: (bytes: number) => void,
): Promise<TurnHistory> {
  const ownEvents = createOwnEvents(turn);
  const backwardTurns = createBackwardTurns();
  let turns: Turn[] = [];
  let recorded: RecordedCalls | undefined;
  let bytes = 0;
  for await (const page of readHistoryBackwards(source, session_id, revision)) {
    reserveBytes(bytes + totalBytesOf(page.map(({ stored }) => stored)));
    bytes += ownEvents.add(page) + bytesOfEarlierCalls(page, turn);
    recorded = collectRecordedCalls(eventsOf(ownEvents.all()), turn);
    const events = sessionEvents(page);
    const earlier = backwardTurns.add(events).filter((older) => older.turn < turn);
    bytes += earlier.reduce((sum, older) => sum + bytesOfTurn(older), 0);
    turns = [...earlier, ...turns];
    const oldest = recorded ? oldestTurnOf(recorded) : turn;
    if (events.some((event) => isBefore(event, oldest))) break;
  }
  if (!recorded) throw turnNotFoundError();
  const events = ownEvents.all();
  const summaryOf = await findSummaries(source, session_id, { events, recorded });
  return { turns, recorded, bytes, summaryOf };
}
