import {
  oldestTurnOf,
  collectRecordedCalls,
  turnNumberOf,
  type SummaryReference,
  type RecordedCalls,
} from './requests.ts';
import { isBesideTurns, type SessionEvent } from '../events.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { streamId, sessionStream } from '../../eventlog/streams.ts';
import type { DecodedEvent } from '../../eventlog/reading/wholeStream.ts';
import { totalBytesOf } from '../../ports/eventStore.ts';
import { turnNotFound } from './turn.ts';
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
  const reader = createBackwardReader(source, sessionId, revision);
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

/** Events of a session for rebuilding the requests of a turn. */
interface TurnHistory {
  events: readonly SessionEvent[];
  recorded: RecordedCalls;
  /** Stored size of the events. */
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

/** The located events without those beside turns. */
const locatedEvents = (page: readonly DecodedEvent[]): LocatedEvent[] =>
  page.flatMap(({ recorded: { stream, revision }, event }) =>
    isBesideTurns(event)
      ? []
      : [{ session_id: streamId(stream), revision, event: event as SessionEvent }],
  );

const eventsOf = (history: readonly LocatedEvent[]): SessionEvent[] =>
  history.map(({ event }) => event);

/** True if an event is older than a turn. */
const isBefore = (event: SessionEvent, turn: number): boolean =>
  event.type === 'session.started.v1'
    ? (event.data.forked_from?.turn ?? 0) < turn
    : (turnNumberOf(event) ?? turn) < turn;

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
 * Reads the events of a turn, and the earlier events that its requests contain, in pages. Reserves
 * memory for each page.
 */
export async function readTurnHistory(
  source: StreamSource,
  { session_id, turn, revision }: OwnTurn,
  reserveBytes: (bytes: number) => Promise<void>,
): Promise<TurnHistory> {
  let events: LocatedEvent[] = [];
  let recorded: RecordedCalls | undefined;
  let bytes = 0;
  for await (const page of readHistoryBackwards(source, session_id, revision)) {
    const size = totalBytesOf(page.map(({ stored }) => stored));
    await reserveBytes(size);
    bytes += size;
    events = [...locatedEvents(page), ...events];
    const sessionEvents = eventsOf(events);
    recorded = collectRecordedCalls(sessionEvents, turn);
    const oldest = recorded ? oldestTurnOf(recorded) : turn;
    if (sessionEvents.some((event) => isBefore(event, oldest))) break;
  }
  if (!recorded) throw turnNotFound();
  const summaryOf = await findSummaries(source, session_id, { events, recorded });
  return { events: eventsOf(events), recorded, bytes, summaryOf };
}
