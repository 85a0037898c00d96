import {
  oldestTurnOf,
  recordedCalls,
  turnNumberOf,
  type NamedSummary,
  type RecordedCalls,
} from './requests.ts';
import type { SessionEvent } from '../events.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { streamId } from '../../eventlog/streams.ts';
import type { KnownEvent } from '../../eventlog/reading/wholeStream.ts';
import { bytesOf } from '../../ports/eventStore.ts';
import { historyBefore, summaryAt, type SummaryPlace } from '../history/sessionHistory.ts';
import { turnNotFound } from './turn.ts';

/** An event, and where it stands: of a fork, perhaps in a session whose turns it shares. */
interface Placed extends SummaryPlace {
  event: SessionEvent;
}

/** What is read of a session for the requests of a turn. */
interface TurnHistory {
  events: readonly SessionEvent[];
  recorded: RecordedCalls;
  /** Of the events, as they are stored. */
  bytes: number;
  /** What such a name stands for. */
  summaryOf: (named: NamedSummary) => { text: string } | undefined;
}

/** A turn whose session recorded it. */
interface OwnTurn {
  session_id: string;
  turn: number;
  /** Of its last event; undefined where it may have none yet. */
  revision: number | undefined;
}

/** Without what is stored of them, and without what moves no prompt: a session may be described any number of times. */
const placed = (page: readonly KnownEvent[]): Placed[] =>
  page.flatMap(({ recorded: { stream, revision }, event }) =>
    event.type === 'session.described.v1'
      ? []
      : [{ session_id: streamId(stream), revision, event: event as SessionEvent }],
  );

const eventsIn = (history: readonly Placed[]): SessionEvent[] => history.map(({ event }) => event);

/** True for an event that has nothing of a turn before it, nor of later ones. */
const isBefore = (event: SessionEvent, turn: number): boolean =>
  event.type === 'session.started.v1'
    ? (event.data.forked_from?.turn ?? 0) < turn
    : (turnNumberOf(event) ?? turn) < turn;

const isAt = (a: SummaryPlace, b: SummaryPlace): boolean =>
  a.session_id === b.session_id && a.revision === b.revision;

/** The summaries that the requests hold, and where they are. Errors: those of summaryAt. */
async function summariesFor(
  source: StreamSource,
  sessionId: string,
  { events, recorded: { started, compactions } }: { events: Placed[]; recorded: RecordedCalls },
): Promise<TurnHistory['summaryOf']> {
  const summaries: (SummaryPlace & { text: string })[] = [];
  const placeOf = ({ summary_revision, summary_session_id }: NamedSummary) =>
    summary_revision === undefined
      ? undefined
      : { session_id: summary_session_id ?? sessionId, revision: summary_revision };
  const found = (named: NamedSummary) => {
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
        : await summaryAt(source, sessionId, place);
    if (text !== undefined) summaries.push({ ...place, text });
  }
  return found;
}

/**
 * The events of a turn, and those before it that its requests hold, in pages for which room is asked
 * for. Errors: those of historyBefore and of `hold`, `turn_not_found`.
 */
export async function historyOfTurn(
  source: StreamSource,
  { session_id, turn, revision }: OwnTurn,
  hold: (bytes: number) => Promise<void>,
): Promise<TurnHistory> {
  let events: Placed[] = [];
  let recorded: RecordedCalls | undefined;
  let bytes = 0;
  for await (const page of historyBefore(source, session_id, revision)) {
    const size = page.reduce((sum, { stored }) => sum + bytesOf(stored), 0);
    await hold(size);
    bytes += size;
    events = [...placed(page), ...events];
    const known = eventsIn(events);
    recorded = recordedCalls(known, turn);
    const oldest = recorded ? oldestTurnOf(recorded) : turn;
    if (known.some((event) => isBefore(event, oldest))) break;
  }
  if (!recorded) throw turnNotFound();
  const summaryOf = await summariesFor(source, session_id, { events, recorded });
  return { events: eventsIn(events), recorded, bytes, summaryOf };
}
