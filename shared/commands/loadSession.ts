import { session, type SessionCommand, type SessionState } from '../domain/session/decider.ts';
import type { SessionEvent } from '../domain/session/events.ts';
import { turnsOf, type Turn } from '../domain/session/prompt.ts';
import { headOf, NO_STREAM } from '../eventlog/append.ts';
import type { StreamSource } from '../eventlog/noteDamage.ts';
import type { OpenedEvent } from '../eventlog/openTexts.ts';
import { readBeginning, readPage } from '../eventlog/readWhole.ts';
import type { Flaw } from '../eventlog/streamDamage.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { headAfter, type KnownEvent } from '../eventlog/wholeStream.ts';
import { LIMITS } from '../limits.ts';
import type { Loaded, Target } from './target.ts';

export interface LoadedSession extends Loaded<SessionState> {
  /** Id of the last event; what a recovery names as the cause. */
  lastEventId: string | undefined;
  account_id: string | undefined;
  /** The completed turns to show the model, oldest first. */
  history: Turn[];
  /**
   * The newest completed turns, oldest first: those of `history` and, unless `whole`, at least one
   * that did not fit.
   */
  turns: Turn[];
  /** True when `turns` are all that the session has completed. */
  whole: boolean;
}

/** A session that nobody has begun; its id was just made, so there is nothing to read. */
export const NEW_SESSION: LoadedSession = {
  state: session.initialState,
  head: NO_STREAM,
  lastEventId: undefined,
  account_id: undefined,
  history: [],
  turns: [],
  whole: true,
};

/** What is wrong with a session that is known, and not there. */
export const eventsGone = ({ state }: LoadedSession): Flaw | undefined =>
  state.status === 'none' ? { reason: 'its events are gone', revision: 0 } : undefined;

const FIRST_PAGE = 8;
const LATER_PAGE = 32;
const LARGEST_PAGE = 1_024;

/**
 * Reads a session backwards until `select` has found the turns that fit: the cost does not grow
 * with the session. `select` takes completed turns, oldest first, and returns the newest of them
 * that fit. The state needs only how the session begins and how it ends. What is read is checked,
 * and that the session begins at revision 0.
 * Errors: `stream_damaged` (noted), `store_unavailable`.
 */
export async function loadSession(
  source: StreamSource,
  sessionId: string,
  select: (turns: Turn[]) => Promise<Turn[]>,
): Promise<LoadedSession> {
  const stream = sessionStream(sessionId);
  let tail: KnownEvent[] = [];
  let oldest: OpenedEvent | undefined;
  let last: OpenedEvent | undefined;
  for (;;) {
    const read = oldest && last ? last.revision - oldest.revision + 1 : 0;
    // As many as there are already: no more than twice what is needed is read, in few pages.
    const limit = read === 0 ? FIRST_PAGE : Math.min(Math.max(read, LATER_PAGE), LARGEST_PAGE);
    const page = await readPage(source, stream, {
      direction: 'backwards',
      ...(oldest && { from: oldest.revision - 1 }),
      limit,
      maxBytes: LIMITS.store.pageBytes,
    });
    // A session may be described any number of times between two turns.
    tail = [...page.filter(({ event }) => event.type !== 'session.described.v1'), ...tail];
    oldest = page[0]?.recorded ?? oldest;
    last ??= page.at(-1)?.recorded;
    if (!oldest || !last) return NEW_SESSION;
    const turns = completedTurns(sessionEvents(tail));
    const isErased = tail.at(-1)?.event.type === 'session.erased.v1';
    const history = isErased ? [] : await select(turns);
    const whole = oldest.revision === 0;
    if (!whole && !isErased && history.length === turns.length) continue;
    const first = whole ? [] : [await readBeginning(source, stream)];
    source.damaged.forget(stream, { from: oldest.revision, to: last.revision });
    const state = sessionEvents([...first, ...tail]).reduce(session.evolve, session.initialState);
    return {
      state,
      head: headOf(last, headAfter(NO_STREAM, tail)),
      lastEventId: last.id,
      account_id: last.metadata.account_id,
      history,
      turns,
      whole,
    };
  }
}

/** For commands that need no earlier turns: only the beginning and the end are read. */
export const sessionTarget = (
  sessionId: string,
): Target<SessionCommand, SessionState, SessionEvent, LoadedSession> => ({
  stream: sessionStream(sessionId),
  decider: session,
  load: (source) => loadSession(source, sessionId, () => Promise.resolve([])),
});

export const completedTurns = (events: readonly SessionEvent[]): Turn[] =>
  turnsOf(events).filter((turn) => turn.output !== undefined);

/** Events of a session's stream; a stream that was checked holds no others. */
export const sessionEvents = (events: readonly KnownEvent[]): SessionEvent[] =>
  events.map(({ event }) => event as SessionEvent);
