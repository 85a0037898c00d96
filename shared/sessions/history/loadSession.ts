import { session } from '../decider.ts';
import type { SessionCommand, SessionState } from '../commands.ts';
import type { ForkPoint, SessionEvent } from '../events.ts';
import { turnsOf, type Summary, type Turn } from '../turns/prompt.ts';
import { createBackReader } from './readBackwards.ts';
import { summaryOf } from './summaryOf.ts';
import { headOf, NO_STREAM } from '../../eventlog/append.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import type { OpenedEvent } from '../../eventlog/encryption/openTexts.ts';
import { readBeginning } from '../../eventlog/reading/readWhole.ts';
import type { Flaw } from '../../eventlog/reading/streamDamage.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { headAfter, type KnownEvent } from '../../eventlog/reading/wholeStream.ts';
import type { Loaded, Target } from '../../commandHandling/targetStream.ts';

export interface LoadedSession extends Loaded<SessionState> {
  /** Id of the last event; what a recovery names as the cause. */
  lastEventId: string | undefined;
  account_id: string | undefined;
  /** The sessions whose turns it shares, the nearest first. */
  origins: readonly ForkPoint[];
  /** What stands for the turns up to one. */
  summary: Summary | undefined;
  /** The completed turns to show the model, oldest first. */
  history: Turn[];
  /**
   * The newest completed turns, oldest first: those of `history` and, unless `whole`, at least one
   * that did not fit.
   */
  turns: Turn[];
  /** True when `turns` are all that the session has completed, but for those of the summary. */
  whole: boolean;
}

/** A session that nobody has begun; its id was just made, so there is nothing to read. */
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

/** What is wrong with a session that is known, and not there. */
export const eventsGone = ({ state }: LoadedSession): Flaw | undefined =>
  state.status === 'none' ? { reason: 'its events are gone', revision: 0 } : undefined;

/** Which completed turns (oldest first) fit, beside the summary: the newest of them. */
export type Select = (turns: Turn[], summary: Summary | undefined) => Promise<Turn[]>;

/**
 * Reads a session backwards until `select` has found the turns that fit: the cost does not grow
 * with the session. `select` takes completed turns, oldest first, and returns the newest of them
 * that fit; those that a fork shares are read where they are. Without it no turn is wanted. The
 * state needs only how the session begins and how it ends. What is read is checked, and that the
 * session begins at revision 0.
 * Errors: `origin_erased`, `stream_damaged` (noted), `store_unavailable`.
 */
export async function loadSession(
  source: StreamSource,
  sessionId: string,
  select?: Select,
): Promise<LoadedSession> {
  const stream = sessionStream(sessionId);
  const reader = createBackReader(source, sessionId);
  let tail: KnownEvent[] = [];
  let summary: Summary | undefined;
  let oldest: OpenedEvent | undefined;
  let last: OpenedEvent | undefined;
  for (;;) {
    const page = await reader.older();
    // A session may be described any number of times between two turns.
    tail = [...page.filter(({ event }) => event.type !== 'session.described.v1'), ...tail];
    if (page[0]?.recorded.stream === stream) oldest = page[0].recorded;
    last ??= page.at(-1)?.recorded;
    if (!oldest || !last) return NEW_SESSION;
    const events = sessionEvents(tail);
    const isErased = tail.at(-1)?.event.type === 'session.erased.v1';
    if (!isErased) summary ??= await summaryOf(source, tail);
    const turns = completedTurns(events, summary);
    const history = isErased || !select ? [] : await select(turns, summary);
    const begins = reader.beginning() !== undefined;
    const whole = reader.isWhole() || reaches(events, summary);
    const isEnough = whole || isErased || (begins && !select) || history.length < turns.length;
    if (!isEnough) continue;
    const first = reader.beginning() ?? (await readBeginning(source, stream));
    source.damaged.forget(stream, { from: oldest.revision, to: last.revision });
    const own = tail.filter(({ recorded }) => recorded.stream === stream);
    const state = sessionEvents([...(begins ? [] : [first]), ...own]).reduce(
      session.evolve,
      session.initialState,
    );
    return {
      state,
      head: headOf(last, headAfter(NO_STREAM, own)),
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

/** For commands that need no earlier turns: only the beginning and the end are read. */
export const sessionTarget = (
  sessionId: string,
): Target<SessionCommand, SessionState, SessionEvent, LoadedSession> => ({
  stream: sessionStream(sessionId),
  decider: session,
  load: (source) => loadSession(source, sessionId),
});

/** True where the events go back to turns that the summary stands for. */
const reaches = (events: readonly SessionEvent[], summary: Summary | undefined): boolean =>
  summary !== undefined &&
  events.some(
    ({ type, data }) =>
      (type === 'session.turn_started.v1' && data.turn <= summary.up_to_turn) ||
      (type === 'session.started.v1' && (data.forked_from?.turn ?? 0) <= summary.up_to_turn),
  );

/** Those that a summary stands for are left out. */
export const completedTurns = (events: readonly SessionEvent[], summary?: Summary): Turn[] =>
  turnsOf(events).filter(
    ({ turn, output }) => output !== undefined && turn > (summary?.up_to_turn ?? 0),
  );

/** Events of a session's stream; a stream that was checked holds no others. */
export const sessionEvents = (events: readonly KnownEvent[]): SessionEvent[] =>
  events.map(({ event }) => event as SessionEvent);
