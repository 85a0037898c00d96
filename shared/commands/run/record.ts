import { setTimeout as sleep } from 'node:timers/promises';
import { session, type SessionCommand, type SessionState } from '../../domain/session/decider.ts';
import { isTurnlogError, storeUnavailable } from '../../errors.ts';
import { appendEvents, type StreamHead } from '../../eventlog/append.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { isoTime } from '../../ports/clock.ts';
import type { Position } from '../../ports/eventStore.ts';
import type { Actor, CommandContext } from '../context.ts';
import type { OpenRun, RunContext } from './context.ts';

export interface SessionTarget {
  session_id: string;
  state: SessionState;
  head: StreamHead;
}

/** Decides and appends at the head that was read. Errors: Rejection, and those of EventStore.append. */
export async function record(
  { store, ids, clock }: Pick<CommandContext, 'store' | 'ids' | 'clock'>,
  author: Actor & { causation_id: string },
  target: SessionTarget,
  command: SessionCommand,
): Promise<{ head: StreamHead; position: Position; lastEventId: string }> {
  const events = session.decide(command, target.state).map((event) => ({ id: ids.uuid(), ...event }));
  const authorship = { account_id: author.account_id, key_id: author.key_id, request_id: author.request_id, causation_id: author.causation_id, recorded_at: isoTime(clock.now()) };
  const appended = await appendEvents(store, { stream: sessionStream(target.session_id), head: target.head }, events, authorship);
  return { ...appended, lastEventId: events.at(-1)!.id };
}

/** Records a fact of a run that goes on, and moves the run's head. Errors: those of EventStore.append. */
export async function recordInRun(context: CommandContext, run: OpenRun, command: SessionCommand): Promise<Position> {
  const { head, position } = await record(context, { ...run.actor, causation_id: run.causation_id }, run, command);
  run.head = head;
  return position;
}

const FIRST_PAUSE_MS = 50;
/** A client waits for the answer that this records; longer than this it would rather know. */
const END_LIMIT_MS = 10_000;

/**
 * Records how a turn ended, trying again for some seconds while the store is away: the answer is worth waiting for. A turn
 * that stays open is noted in `leftOpen`.
 * Errors: those of EventStore.append. `stream_conflict`, when another replica has interrupted the turn meanwhile, becomes `store_unavailable`.
 */
export async function recordEnd(context: RunContext, run: OpenRun, command: SessionCommand): Promise<Position> {
  const giveUpAt = context.clock.now() + END_LIMIT_MS;
  for (let pause = FIRST_PAUSE_MS; ; pause *= 2) {
    try {
      return await recordInRun(context, run, command);
    } catch (error) {
      if (isTurnlogError(error, 'stream_conflict')) throw storeUnavailable('The turn was interrupted before its end could be recorded.', error);
      if (!isTurnlogError(error, 'store_unavailable')) throw error;
      if (context.clock.now() + pause > giveUpAt) {
        context.leftOpen.add(run.session_id);
        throw error;
      }
      context.logger.warn({ err: error, session_id: run.session_id, turn: run.turn }, 'the end of a turn could not be recorded yet');
      await sleep(pause);
    }
  }
}
