import { createBackoff } from '../lib/time/backoff.ts';
import { session } from '../sessions/decider.ts';
import type { SessionCommand } from '../sessions/commands.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { createConflictLimit, type ConflictLimit } from '../eventlog/conflictLimit.ts';
import { asDamage } from '../eventlog/reading/reportDamage.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { errorSummary } from '../lib/errors/errorSummary.ts';
import { sleep } from '../lib/time/sleep.ts';
import type { Position } from '../ports/eventStore.ts';
import { appendFacts, factsOf, type Facts } from '../commandHandling/recordEvents.ts';
import type { HandleContext } from '../commandHandling/handle.ts';
import { afterConflict } from './resolveConflict.ts';
import type { OpenRun, RunContext, RunSessions } from './context.ts';

const PAUSES = { firstMs: 50, longestMs: 500 };
/** A client waits for what this records; longer than this it would rather know. */
const LIMIT_MS = 10_000;

type RecordContext = HandleContext & Pick<RunContext, 'logger'>;

/** Undefined after a conflict that leaves the turn open without the facts. */
async function appendOnce(
  context: HandleContext,
  run: OpenRun,
  facts: Facts,
  conflicts: ConflictLimit,
): Promise<Position | undefined> {
  const { revision } = run.head;
  const target = { stream: sessionStream(run.request.session_id), head: run.head };
  try {
    const { head, position } = await appendFacts(context.store, target, facts);
    run.head = head;
    return position;
  } catch (error) {
    if (!isTurnlogError(error, 'stream_conflict')) throw error;
    const found = await afterConflict(context, run, facts, error);
    if (found === undefined) await conflicts.lost(revision);
    return found;
  }
}

/**
 * Records a fact of a run, once, and moves the run's head. While the store is away it tries again
 * for `patienceMs`; an append whose outcome stayed unknown may have been written, which the next
 * try finds. Where others write to the session it tries for some seconds in any case.
 * Errors: `turn_interrupted`, `session_erased`, `stream_damaged`, and those of EventStore.append except for
 * `stream_conflict`.
 */
export async function recordInRun(
  context: RecordContext,
  run: OpenRun,
  command: SessionCommand,
  patienceMs = 0,
): Promise<Position> {
  const { actor, session_id } = run.request;
  const author = { ...actor, causation_id: run.causation_id };
  const events = session.decide(command, run.state);
  const facts = await factsOf(context, author, run.head, events);
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
 * is noted in `leftOpen`, to be closed as soon as the store is back.
 * Errors: those of recordInRun.
 */
export async function recordEnd(
  context: RecordContext & { sessions: Pick<RunSessions, 'leftOpen'> },
  run: OpenRun,
  command: SessionCommand,
): Promise<Position> {
  const { session_id } = run.request;
  try {
    return await recordInRun(context, run, command, LIMIT_MS);
  } catch (error) {
    if (isTurnlogError(error, 'stream_damaged'))
      throw await asDamage(context, sessionStream(session_id), error, '/session_id');
    if (!isTurnlogError(error, 'turn_interrupted') && !isTurnlogError(error, 'session_erased'))
      context.sessions.leftOpen.add(session_id, run.head.revision + 1);
    throw error;
  }
}
