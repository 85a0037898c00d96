import { createBackoff } from '../lib/time/backoff.ts';
import { session, type SessionCommand, type SessionState } from '../sessions/decider.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { createConflictLimit, type ConflictLimit } from '../eventlog/conflictLimit.ts';
import { toDamageError, type StreamSource } from '../eventlog/reading/reportDamage.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { errorSummary } from '../lib/errors/errorSummary.ts';
import { sleep } from '../lib/time/sleep.ts';
import { renewWaitBudget, waitLimitMs } from '../lib/time/waitBudget.ts';
import type { Position } from '../ports/eventStore.ts';
import type { TurnWrite } from '../ports/readModels.ts';
import { loggedRequestId } from '../commandHandling/context.ts';
import { prepareEvents, type PreparedEvents } from '../commandHandling/prepareEvents.ts';
import type { HandleContext } from '../commandHandling/handle.ts';
import type { OpenRun, RunContext, RunState } from './context.ts';
import { sessionErasedError } from '../erasure/errors.ts';
import { headOf, appendEvents } from '../eventlog/append.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import type { DecodedEvent } from '../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../limits.ts';
import { sessionEvents } from '../sessions/history/loadSession.ts';
import { turnEndedError, turnEndSignal } from './queueing/turnWatch.ts';

/**
 * After a run's head, a page must include the events that the run itself appended, or the end of
 * its turn by another writer. An append has at most eight events. Later ones do not matter.
 */
const NEWS_PAGE = 16;

/** The turn of a run. */
export const turnOf = ({ request: { session_id }, state: { turn } }: OpenRun) => ({
  session_id,
  turn,
});

/** The first event after which the run's turn is no longer open. */
function findEventEndingTurn(
  { state: { turn }, state }: OpenRun,
  events: DecodedEvent[],
): DecodedEvent | undefined {
  let current: SessionState = state;
  return events.find((event) => {
    current = sessionEvents([event]).reduce(session.evolve, current);
    return current.status !== 'running' || current.turn !== turn;
  });
}

/**
 * Reads the events with which an append of the run conflicted, and advances the run's head past
 * them, but never into a later turn. Returns the position of the run's events if an append that
 * seemed to fail had written them; undefined if the turn is open without them. Throws
 * `turn_interrupted` or `session_erased` if the turn was ended from outside.
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
  // The run has memory already, and continues without its client.
  const { store, damaged } = source;
  const news = await readPage({ store, damaged }, sessionStream(run.request.session_id), page);
  const own = news.findLast(({ recorded }) => events.some(({ id }) => id === recorded.id));
  if (news.some(({ event }) => event.type === 'session.erased.v1'))
    throw sessionErasedError(conflict);
  const end = findEventEndingTurn(run, news);
  if (end !== own && end !== undefined) {
    throw turnEndedError(turnEndSignal(end.stored)?.kind ?? 'ended', turnOf(run), conflict);
  }
  const last = end ?? news.at(-1);
  if (last) run.head = headOf(last.recorded, run.head);
  return own?.recorded.position;
}

const PAUSES = { firstMs: 50, longestMs: 500 };
/** Time limit for retries, because a client waits for the response. Its request may have less left. */
const RETRY_LIMIT_MS = 10_000;

export type RecordTurnContext = HandleContext & Pick<RunContext, 'logger'>;

/** Undefined after a conflict that leaves the turn open without the events. */
async function appendOnce(
  context: HandleContext,
  run: OpenRun,
  events: PreparedEvents,
  conflicts: ConflictLimit,
): Promise<Position | undefined> {
  const { revision } = run.head;
  const target = { stream: sessionStream(run.request.session_id), head: run.head };
  try {
    const { head, position } = await appendEvents(context.store, target, events);
    run.head = head;
    return position;
  } catch (error) {
    if (!isTurnlogError(error, 'stream_conflict')) throw error;
    const position = await resolveAppendConflict(context, run, events, error);
    if (position === undefined) await conflicts.recordConflict(revision);
    return position;
  }
}

/**
 * Records events of a run exactly once, in one append, and advances the run's head. While the store is
 * unavailable, and after conflicts with other writers, retries for some seconds: tools that were called
 * can not be called again. The calls and the end of a turn share that time, since a shutdown waits for
 * them. An append with an unknown outcome may have been written, which the next attempt detects. A run may take long and wait often: each recorded event lets its request wait for the
 * whole limit again.
 */
export async function recordTurnEvents(
  context: RecordTurnContext,
  run: OpenRun,
  commands: readonly SessionCommand[],
): Promise<TurnWrite> {
  const { actor, session_id } = run.request;
  const author = { ...actor, causation_id: run.causation_id };
  const events = commands.flatMap((command) => session.decide(command, run.state));
  const prepared = await prepareEvents(context, author, run.head, events);
  const startedAt = performance.now();
  const conflicts = createConflictLimit(context, sessionStream(session_id), {
    until: startedAt + RETRY_LIMIT_MS,
  });
  const pauses = createBackoff(PAUSES);
  let warned = false;
  for (;;) {
    const pauseMs = pauses.next();
    try {
      const position = await appendOnce(context, run, prepared, conflicts);
      if (position !== undefined) {
        renewWaitBudget();
        run.unavailableSince = undefined;
        return { position, account_id: actor.account_id, session_id };
      }
    } catch (error) {
      if (!isTurnlogError(error, 'store_unavailable')) throw error;
      run.unavailableSince ??= startedAt;
      const retryUntil = run.unavailableSince + waitLimitMs(RETRY_LIMIT_MS);
      if (performance.now() + pauseMs > retryUntil) throw error;
      if (!warned)
        context.logger.warn(
          {
            request_id: loggedRequestId(actor),
            session_id,
            turn: run.state.turn,
            ...errorSummary(error),
          },
          'events of a turn could not be recorded yet',
        );
      warned = true;
      await sleep(pauseMs);
    }
  }
}

/**
 * Records the end of a turn, with some seconds of retries. A turn that may still be open is added
 * to `openTurnQueue`, and is closed as soon as the store is available.
 */
export async function recordTurnEnd(
  context: RecordTurnContext & { runState: Pick<RunState, 'openTurnQueue'> },
  run: OpenRun,
  command: SessionCommand,
): Promise<TurnWrite> {
  const { session_id } = run.request;
  try {
    return await recordTurnEvents(context, run, [command]);
  } catch (error) {
    if (isTurnlogError(error, 'stream_damaged'))
      throw await toDamageError(context, sessionStream(session_id), error, '/session_id');
    if (!isTurnlogError(error, 'turn_interrupted') && !isTurnlogError(error, 'session_erased'))
      context.runState.openTurnQueue.add(session_id, run.head.revision + 1);
    throw error;
  }
}
