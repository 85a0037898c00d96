import { session, type SessionState } from '../../domain/session/decider.ts';
import type { SessionEvent } from '../../domain/session/events.ts';
import { turnsOf, type Turn } from '../../domain/session/prompt.ts';
import { headOf, NO_STREAM, type StreamHead } from '../../eventlog/append.ts';
import { decodeEvent } from '../../eventlog/codec.ts';
import { toDomainEvent } from '../../eventlog/domainEvent.ts';
import type { RecordedEvent } from '../../eventlog/event.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { EventStore } from '../../ports/eventStore.ts';

export interface LoadedSession {
  state: SessionState;
  head: StreamHead;
  /** Id of the last event; what a recovery names as the cause. */
  lastEventId: string | undefined;
  account_id: string | undefined;
  /** The completed turns to show the model, oldest first. */
  history: Turn[];
  /** The newest completed turns, oldest first: those of `history` and, unless `whole`, at least one that did not fit. */
  turns: Turn[];
  /** True when `turns` are all that the session has completed. */
  whole: boolean;
}

/** A session that nobody has begun; its id was just made, so there is nothing to read. */
export const NEW_SESSION: LoadedSession = { state: session.initialState, head: NO_STREAM, lastEventId: undefined, account_id: undefined, history: [], turns: [], whole: true };

const FIRST_PAGE = 32;
const LARGEST_PAGE = 1_024;

/**
 * Reads a session backwards, only until `select` has found the turns that fit: the cost does not grow with the session.
 * `select` takes completed turns, oldest first, and returns the newest of them that fit.
 * Errors: `store_unavailable`.
 */
export async function loadSession(store: EventStore, sessionId: string, select: (turns: Turn[]) => Promise<Turn[]>): Promise<LoadedSession> {
  const stream = sessionStream(sessionId);
  const tail: RecordedEvent[] = [];
  for (;;) {
    // As many as there are already: no more than twice what is needed is read, in few pages.
    const limit = Math.min(Math.max(tail.length, FIRST_PAGE), LARGEST_PAGE);
    const from = tail[0] === undefined ? {} : { from: tail[0].revision - 1 };
    const older = await store.readStream(stream, { direction: 'backwards', ...from, limit });
    tail.unshift(...older.toReversed().map(decodeEvent));
    if (tail[0] === undefined) return NEW_SESSION;
    const turns = completedTurns(domainEvents(tail));
    const history = await select(turns);
    const whole = tail[0].revision === 0;
    if (!whole && history.length === turns.length) continue;
    const last = tail.at(-1)!;
    return { state: await stateOf(store, stream, tail), head: headOf(last), lastEventId: last.id, account_id: last.metadata.account_id, history, turns, whole };
  }
}

export const completedTurns = (events: readonly SessionEvent[]): Turn[] => turnsOf(events).filter((turn) => turn.output !== undefined);

export const domainEvents = (events: readonly RecordedEvent[]): SessionEvent[] => events.flatMap((event) => (toDomainEvent(event) as SessionEvent | undefined) ?? []);

/** The state needs only how the session began and how it ends; what lies between changes nothing about it. */
async function stateOf(store: EventStore, stream: string, tail: readonly RecordedEvent[]): Promise<SessionState> {
  const first = tail[0]!.revision === 0 ? [] : (await store.readStream(stream, { direction: 'forwards', from: 0, limit: 1 })).map(decodeEvent);
  return domainEvents([...first, ...tail]).reduce(session.evolve, session.initialState);
}
