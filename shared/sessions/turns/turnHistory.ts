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
import type { KnownEvent } from '../../eventlog/reading/wholeStream.ts';
import { bytesOf } from '../../ports/eventStore.ts';
import { turnNotFound } from './turn.ts';
import { createBackwardReader } from '../history/readBackwards.ts';
import { originErasedError, sessionErasedError } from '../../erasure/errors.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';

/** Refuses what an erasure emptied, of the session itself or of one whose turns it shares. */
function requireTexts(page: readonly KnownEvent[], sessionId: string): void {
  const emptied = page.find(({ recorded }) => recorded.erased)?.recorded;
  if (!emptied) return;
  throw emptied.stream === sessionStream(sessionId) ? sessionErasedError() : originErasedError();
}

/**
 * The events of a session from a revision, or from its newest event, back to its beginning and, of
 * a fork, on in the sessions whose turns it shares: in pages, the newest page first, each oldest
 * first. Whoever builds requests again reads what was said before through here.
 */
async function* readHistoryBackwards(
  source: StreamSource,
  sessionId: string,
  revision?: number,
): AsyncGenerator<KnownEvent[], void> {
  const reader = createBackwardReader(source, sessionId, revision);
  do {
    const page = await reader.readOlder();
    requireTexts(page, sessionId);
    if (page.length === 0) return;
    yield page;
  } while (!reader.isWhole());
}

/** Where an event is that holds a summary. */
interface SummaryLocation {
  session_id: string;
  revision: number;
}

/** What an event says in short of the turns up to one, to the session whose requests hold it. */
async function readSummaryAt(
  source: StreamSource,
  sessionId: string,
  { session_id, revision }: SummaryLocation,
): Promise<string | undefined> {
  const place = { direction: 'forwards', from: revision, limit: 1 } as const;
  const page = await readPage(source, sessionStream(session_id), place);
  requireTexts(page, sessionId);
  const event = page[0]?.event;
  return event?.type === 'session.compacted.v1' ? event.data.summary : undefined;
}

/** An event, and where it stands: of a fork, perhaps in a session whose turns it shares. */
interface LocatedEvent extends SummaryLocation {
  event: SessionEvent;
}

/** What is read of a session for the requests of a turn. */
interface TurnHistory {
  events: readonly SessionEvent[];
  recorded: RecordedCalls;
  /** Of the events, as they are stored. */
  bytes: number;
  /** What such a name stands for. */
  summaryOf: (named: SummaryReference) => { text: string } | undefined;
}

/** A turn whose session recorded it. */
interface OwnTurn {
  session_id: string;
  turn: number;
  /** Of its last event; undefined where it may have none yet. */
  revision: number | undefined;
}

/** Without what is stored of them, and without what moves no prompt: a session may be described any number of times. */
const locatedEvents = (page: readonly KnownEvent[]): LocatedEvent[] =>
  page.flatMap(({ recorded: { stream, revision }, event }) =>
    event.type === 'session.described.v1'
      ? []
      : [{ session_id: streamId(stream), revision, event: event as SessionEvent }],
  );

const eventsOf = (history: readonly LocatedEvent[]): SessionEvent[] =>
  history.map(({ event }) => event);

/** True for an event that has nothing of a turn before it, nor of later ones. */
const isBefore = (event: SessionEvent, turn: number): boolean =>
  event.type === 'session.started.v1'
    ? (event.data.forked_from?.turn ?? 0) < turn
    : (turnNumberOf(event) ?? turn) < turn;

const isAt = (a: SummaryLocation, b: SummaryLocation): boolean =>
  a.session_id === b.session_id && a.revision === b.revision;

/** The summaries that the requests hold, and where they are. */
async function findSummaries(
  source: StreamSource,
  sessionId: string,
  {
    events,
    recorded: { started, compactions },
  }: { events: LocatedEvent[]; recorded: RecordedCalls },
): Promise<TurnHistory['summaryOf']> {
  const summaries: (SummaryLocation & { text: string })[] = [];
  const placeOf = ({ summary_revision, summary_session_id }: SummaryReference) =>
    summary_revision === undefined
      ? undefined
      : { session_id: summary_session_id ?? sessionId, revision: summary_revision };
  const found = (named: SummaryReference) => {
    const place = placeOf(named);
    return place && summaries.find((summary) => isAt(summary, place));
  };
  const shown = started.context?.compacted === undefined ? [] : [started];
  for (const named of [...compactions, ...shown]) {
    const place = placeOf(named);
    if (!place || found(named)) continue;
    const event = events.find((one) => isAt(one, place))?.event;
    const text =
      event?.type === 'session.compacted.v1'
        ? event.data.summary
        : await readSummaryAt(source, sessionId, place);
    if (text !== undefined) summaries.push({ ...place, text });
  }
  return found;
}

/**
 * The events of a turn, and those before it that its requests hold, in pages for which room is
 * asked for.
 */
export async function readTurnHistory(
  source: StreamSource,
  { session_id, turn, revision }: OwnTurn,
  hold: (bytes: number) => Promise<void>,
): Promise<TurnHistory> {
  let events: LocatedEvent[] = [];
  let recorded: RecordedCalls | undefined;
  let bytes = 0;
  for await (const page of readHistoryBackwards(source, session_id, revision)) {
    const size = page.reduce((sum, { stored }) => sum + bytesOf(stored), 0);
    await hold(size);
    bytes += size;
    events = [...locatedEvents(page), ...events];
    const known = eventsOf(events);
    recorded = collectRecordedCalls(known, turn);
    const oldest = recorded ? oldestTurnOf(recorded) : turn;
    if (known.some((event) => isBefore(event, oldest))) break;
  }
  if (!recorded) throw turnNotFound();
  const summaryOf = await findSummaries(source, session_id, { events, recorded });
  return { events: eventsOf(events), recorded, bytes, summaryOf };
}
