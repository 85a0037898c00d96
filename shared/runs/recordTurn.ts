import { createBackoff } from '../lib/time/backoff.ts';
import { session } from '../sessions/decider.ts';
import type { SessionCommand, SessionState } from '../sessions/commands.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { createConflictLimit, type ConflictLimit } from '../eventlog/conflictLimit.ts';
import { asDamage, type StreamSource } from '../eventlog/reading/reportDamage.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { errorSummary } from '../lib/errors/errorSummary.ts';
import { sleep } from '../lib/time/sleep.ts';
import type { Position } from '../ports/eventStore.ts';
import { prepareEvents, type PreparedEvents } from '../commandHandling/prepareEvents.ts';
import type { HandleContext } from '../commandHandling/handle.ts';
import type { OpenRun, RunContext, RunState } from './context.ts';
import { sessionErasedError } from '../erasure/errors.ts';
import { headOf, appendEvents } from '../eventlog/append.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import type { KnownEvent } from '../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../limits.ts';
import { sessionEvents } from '../sessions/history/loadSession.ts';
import { turnEndedError, turnEndSignal } from './queueing/turnWatch.ts';

/**
 * Right after a run's head stands what it appended itself, or the end of its turn that somebody
 * else appended; what others did after that does not matter. Events may be large.
 */
const NEWS_PAGE = 8;

/** The first event after which the run's turn is not the open one any more. */
function findEventEndingTurn(
  { state: { turn }, state }: OpenRun,
  news: KnownEvent[],
): KnownEvent | undefined {
  let now: SessionState = state;
  return news.find((known) => {
    now = sessionEvents([known]).reduce(session.evolve, now);
    return now.status !== 'running' || now.turn !== turn;
  });
}

/**
 * Looks at what stands where an append of the run met a conflict, and moves the run's head there,
 * but never into a later turn. Resolves with the position of the facts where an append that seemed
 * to fail had written them; undefined where the turn is still open without them.
 */
async function resolveAppendConflict(
  source: StreamSource,
  run: OpenRun,
  { events }: PreparedEvents,
  conflict: unknown,
): Promise<Position | undefined> {
  const page = {
    direction: 'forwards',
    from: run.head.revision + 1,
    limit: NEWS_PAGE,
    maxBytes: LIMITS.store.pageBytes,
  } as const;
  const news = await readPage(source, sessionStream(run.request.session_id), page);
  const own = news.find(({ recorded }) => events.some(({ id }) => id === recorded.id));
  if (news.some(({ event }) => event.type === 'session.erased.v1'))
    throw sessionErasedError(conflict);
  const end = findEventEndingTurn(run, news);
  if (end !== own && end !== undefined) {
    throw turnEndedError(turnEndSignal(end.stored)?.kind ?? 'ended', conflict);
  }
  const last = end ?? news.at(-1);
  if (last) run.head = headOf(last.recorded, run.head);
  return own?.recorded.position;
}

const PAUSES = { firstMs: 50, longestMs: 500 };
/** A client waits for what this records; longer than this it would rather know. */
const LIMIT_MS = 10_000;

export type RecordTurnContext = HandleContext & Pick<RunContext, 'logger'>;

/** Undefined after a conflict that leaves the turn open without the facts. */
async function appendOnce(
  context: HandleContext,
  run: OpenRun,
  facts: PreparedEvents,
  conflicts: ConflictLimit,
): Promise<Position | undefined> {
  const { revision } = run.head;
  const target = { stream: sessionStream(run.request.session_id), head: run.head };
  try {
    const { head, position } = await appendEvents(context.store, target, facts);
    run.head = head;
    return position;
  } catch (error) {
    if (!isTurnlogError(error, 'stream_conflict')) throw error;
    const found = await resolveAppendConflict(context, run, facts, error);
    if (found === undefined) await conflicts.lost(revision);
    return found;
  }
}

/**
 * Records a fact of a run, once, and moves the run's head. While the store is away it tries again
 * for `patienceMs`; an append whose outcome stayed unknown may have been written, which the next
 * try finds. Where others write to the session it tries for some seconds in any case.
 */
export async function recordTurnEvent(
  context: RecordTurnContext,
  run: OpenRun,
  command: SessionCommand,
  patienceMs = 0,
): Promise<Position> {
  const { actor, session_id } = run.request;
  const author = { ...actor, causation_id: run.causation_id };
  const events = session.decide(command, run.state);
  const facts = await prepareEvents(context, author, run.head, events);
  const began = performance.now();
  const conflicts = createConflictLimit(context, sessionStream(session_id), {
    until: began + LIMIT_MS,
  });
  const pauses = createBackoff(PAUSES);
  let said = false;
  for (;;) {
    const pauseMs = pauses.next();
    try {
      const position = await appendOnce(context, run, facts, conflicts);
      if (position !== undefined) return position;
    } catch (error) {
      const tooLate = performance.now() + pauseMs > began + patienceMs;
      if (!isTurnlogError(error, 'store_unavailable') || tooLate) throw error;
      if (!said)
        context.logger.warn(
          {
            request_id: actor.request_id,
            session_id,
            turn: run.state.turn,
            ...errorSummary(error),
          },
          'a fact of a turn could not be recorded yet',
        );
      said = true;
      await sleep(pauseMs);
    }
  }
}

/**
 * Records how a turn ended; the answer is worth waiting for some seconds. A turn that may stay open
 * is noted in `openTurnQueue`, to be closed as soon as the store is back.
 */
export async function recordTurnEnd(
  context: RecordTurnContext & { runState: Pick<RunState, 'openTurnQueue'> },
  run: OpenRun,
  command: SessionCommand,
): Promise<Position> {
  const { session_id } = run.request;
  try {
    return await recordTurnEvent(context, run, command, LIMIT_MS);
  } catch (error) {
    if (isTurnlogError(error, 'stream_damaged'))
      throw await asDamage(context, sessionStream(session_id), error, '/session_id');
    if (!isTurnlogError(error, 'turn_interrupted') && !isTurnlogError(error, 'session_erased'))
      context.runState.openTurnQueue.add(session_id, run.head.revision + 1);
    throw error;
  }
}
