import { session, type SessionCommand, type SessionState } from '../decider.ts';
import { isBesideTurns, type ForkPoint, type SessionEvent } from '../events.ts';
import type { Summary, Turn } from '../turns/prompt.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yieldToEventLoop.ts';
import { createBackwardTurns, oldestTurnIn } from './backwardTurns.ts';
import { createBackwardReader } from './readBackwards.ts';
import { headOf, NO_STREAM } from '../../eventlog/append.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { withReadMemory } from '../../eventlog/reading/readMemory.ts';
import { readFirstEvent, readPage } from '../../eventlog/reading/readWhole.ts';
import type { StreamFlaw } from '../../eventlog/reading/streamDamage.ts';
import { sessionStream, streamId } from '../../eventlog/streams.ts';
import { headAfter, type DecodedEvent } from '../../eventlog/reading/wholeStream.ts';
import type { LoadedStream, TargetStream } from '../../commandHandling/targetStream.ts';

/** An event as loading a session keeps it: without its stored form, which is as long again. */
type KeptEvent = Pick<DecodedEvent, 'recorded' | 'event'>;

const summaryIn = (compaction: KeptEvent | undefined): Summary | undefined => {
  const event = compaction?.event as SessionEvent | undefined;
  if (event?.type !== 'session.compacted.v1') return undefined;
  const { summary, from_turn, up_to_turn, dropped = 0, summary_revision } = event.data;
  const { stream, revision } = compaction!.recorded;
  const oldest = summary_revision === undefined ? from_turn : 1;
  return { text: summary, up_to_turn, dropped, oldest, session_id: streamId(stream), revision };
};

/**
 * The newest summary of a session, from its newest events: the last of them that holds or names a
 * summary. `cached` is the newest summary before these events.
 */
export async function findSummary(
  source: StreamSource,
  newest: readonly KeptEvent[],
  cached?: Summary,
): Promise<Summary | undefined> {
  for (const event of newest.toReversed()) {
    const summary = summaryIn(event);
    if (summary) return summary;
    const started = event.event as SessionEvent;
    if (started.type !== 'session.turn_started.v1') continue;
    const { summary_revision, summary_session_id = streamId(event.recorded.stream) } = started.data;
    if (summary_revision === undefined) return cached;
    const isCached = cached?.session_id === summary_session_id;
    if (isCached && cached.revision === summary_revision) return cached;
    const page = { direction: 'forwards', from: summary_revision, limit: 1 } as const;
    return summaryIn((await readPage(source, sessionStream(summary_session_id), page))[0]);
  }
  return cached;
}

/** The reference to a summary in an event of a session. */
export const summaryReference = (
  { session_id, revision }: Summary,
  sessionId: string,
): { summary_revision: number; summary_session_id?: string } => ({
  summary_revision: revision,
  ...(session_id !== sessionId && { summary_session_id: session_id }),
});

export interface LoadedSession extends LoadedStream<SessionState> {
  /** Id of the last event, which a recovery records as its cause. */
  lastEventId: string | undefined;
  account_id: string | undefined;
  /** The sessions whose turns a fork shares, nearest first. */
  origins: readonly ForkPoint[];
  /** The summary that replaces older turns. */
  summary: Summary | undefined;
  /** The completed turns to show to the model, oldest first. */
  history: Turn[];
  /**
   * The newest completed turns, oldest first: those of `history` and, unless `whole`, at least one
   * that did not fit.
   */
  turns: Turn[];
  /** True if `turns` contains all completed turns except the summarized ones. */
  whole: boolean;
}

/** A session with a new id, whose stream need not be read. */
export const NEW_SESSION: LoadedSession = {
  state: session.initialState,
  head: NO_STREAM,
  lastEventId: undefined,
  account_id: undefined,
  origins: [],
  summary: undefined,
  history: [],
  turns: [],
  whole: true,
};

/** The flaw of an existing session without events, or without its events up to a revision. */
export function findMissingEvents(
  { state, head }: LoadedSession,
  newest = -1,
): StreamFlaw | undefined {
  if (state.status === 'none') return { reason: 'its events are gone', revision: 0 };
  const revision = head.revision + 1;
  return revision > newest ? undefined : { reason: `revision ${revision} is missing`, revision };
}

/** Selects the newest completed turns (oldest first) that fit into the prompt with the summary. */
export type SelectTurns = (turns: Turn[], summary: Summary | undefined) => Promise<Turn[]>;

/**
 * Tells for events of a session, newest first, whether a run needs them: those of completed turns,
 * and how the last turn ended. There may be any number of others, of any size, between two turns.
 */
function createEventFilter(): (event: KeptEvent) => boolean {
  const completed = new Set<number>();
  let lastTurn: number | undefined;
  let isLast = true;
  return ({ event: known }) => {
    const event = known as SessionEvent;
    const wasLast = isLast;
    isLast = false;
    if (isBesideTurns(event)) return wasLast;
    if (!('turn' in event.data)) return true;
    const { turn } = event.data;
    lastTurn ??= turn;
    if (event.type === 'session.turn_completed.v1') completed.add(turn);
    return completed.has(turn) || (turn === lastTurn && event.type !== 'session.tool_called.v1');
  };
}

/** True for an event that holds the newest summary of its session, or names it. */
const namesSummary = ({ event: { type } }: KeptEvent): boolean =>
  type === 'session.compacted.v1' || type === 'session.turn_started.v1';

/** True for an event after which a session's state depends on no earlier one but the first. */
const determinesState = ({ type, data }: SessionEvent): boolean =>
  type === 'session.described.v1'
    ? data.last_turn !== undefined
    : 'turn' in data && type !== 'session.tool_called.v1';

/**
 * Adds an older page of a session's events to those that determine its state, all oldest first. No
 * event is added before one that determines the state.
 */
function withOlderStateEvents(
  events: readonly SessionEvent[],
  older: readonly SessionEvent[],
): readonly SessionEvent[] {
  if (events.some(determinesState)) return events;
  return [...older.slice(Math.max(0, older.findLastIndex(determinesState))), ...events];
}

/**
 * Reads a session backwards until `select` has found the turns that fit, so the cost does not grow
 * with the session. Turns that a fork shares are read from their session. Without `select`, no
 * turns are read. The state only needs the first event and the last turn. Of each page, only its
 * completed turns are kept, without their settings. Checks the chain of what is read, and that the
 * session begins at revision 0. `firstPage` is the number of events in the first page.
 */
export async function loadSession(
  source: StreamSource,
  sessionId: string,
  select?: SelectTurns,
  firstPage?: number,
): Promise<LoadedSession> {
  const stream = sessionStream(sessionId);
  const reader = createBackwardReader(source, sessionId, { firstPage });
  const isNeeded = createEventFilter();
  const backwardTurns = createBackwardTurns();
  let turns: Turn[] = [];
  let stateEvents: readonly SessionEvent[] = [];
  let head = NO_STREAM;
  let summary: Summary | undefined;
  let isSummaryKnown = false;
  let oldestRevision: number | undefined;
  let oldestTurn = Infinity;
  let lastEvent: KeptEvent | undefined;
  for (;;) {
    // Reads of an embedded log don't wait: a long session would keep the event loop busy.
    if (lastEvent) await yieldToEventLoop(lastEvent.recorded.metadata.account_id);
    const page = await reader.readOlder();
    const newest = page.at(-1);
    lastEvent ??= newest && { recorded: newest.recorded, event: newest.event };
    const isOwn = page[0]?.recorded.stream === stream;
    if (isOwn) oldestRevision = page[0]!.recorded.revision;
    if (oldestRevision === undefined || !lastEvent) return NEW_SESSION;
    const last = lastEvent.recorded;
    const needed = page.toReversed().filter(isNeeded).toReversed();
    const events = sessionEvents(needed);
    const { key } = isOwn && !head.key ? headAfter(NO_STREAM, page) : head;
    head = headOf(last, { ...head, key });
    if (isOwn) stateEvents = withOlderStateEvents(stateEvents, events);
    const isErased = lastEvent.event.type === 'session.erased.v1';
    const naming = isErased || isSummaryKnown ? undefined : needed.findLast(namesSummary);
    if (naming) {
      summary = await findSummary(source, [naming]);
      isSummaryKnown = true;
    }
    turns = [...backwardTurns.add(events).filter(isAfter(summary)), ...turns];
    oldestTurn = Math.min(oldestTurn, oldestTurnIn(events));
    const history = isErased || !select ? [] : await select(turns, summary);
    const hasBeginning = reader.beginning() !== undefined;
    const whole = reader.isWhole() || oldestTurn <= (summary?.up_to_turn ?? -1);
    const isEnough =
      whole ||
      isErased ||
      (!select && (hasBeginning || stateEvents.some(determinesState))) ||
      history.length < turns.length;
    if (!isEnough) continue;
    const first = reader.beginning() ?? (await readFirstEvent(source, stream));
    source.damaged.clear(stream, { from: oldestRevision, to: last.revision });
    return {
      state: [...sessionEvents([first]), ...stateEvents].reduce(
        session.evolve,
        session.initialState,
      ),
      head,
      lastEventId: last.id,
      account_id: last.metadata.account_id,
      origins: select ? await reader.origins(first) : [],
      summary,
      history,
      turns,
      whole,
    };
  }
}

/**
 * For commands that need no earlier turns: only the beginning and the end of the stream are read.
 */
export const sessionTarget = (
  sessionId: string,
): TargetStream<SessionCommand, SessionState, SessionEvent, LoadedSession> => ({
  stream: sessionStream(sessionId),
  decider: session,
  load: (source) => withReadMemory(source, () => loadSession(source, sessionId)),
});

/**
 * For commands that end an open turn. Its start is usually the newest event, and the turn before it
 * may be large. Such commands record no texts: after the turn, the key of the texts may be unknown.
 */
export const openTurnTarget = (sessionId: string): ReturnType<typeof sessionTarget> => ({
  ...sessionTarget(sessionId),
  load: (source) => withReadMemory(source, () => loadSession(source, sessionId, undefined, 1)),
});

/** True for a turn that the summary does not replace. */
export const isAfter =
  (summary: Summary | undefined) =>
  ({ turn }: Turn): boolean =>
    turn > (summary?.up_to_turn ?? 0);

/** The events of a session's stream. A checked stream contains no other events. */
export const sessionEvents = (events: readonly Pick<DecodedEvent, 'event'>[]): SessionEvent[] =>
  events.map(({ event }) => event as SessionEvent);
