import { session, type RunningSession, type SessionCommand } from '../../domain/session/decider.ts';
import type { ChatSettings } from '../../domain/session/chat.ts';
import { turnsOf } from '../../domain/session/prompt.ts';
import { isLogAway, isTurnlogError, TurnlogError } from '../../errors.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { isoTime } from '../../ports/clock.ts';
import { appendFacts, authorOf, factsOf } from '../facts.ts';
import type { LoadedSession } from '../loadSession.ts';
import type { OpenRun, RunContext } from './context.ts';
import type { RunRequest } from './request.ts';

/** What a run knows when it asks for its turn. */
interface Start {
  settings: ChatSettings;
  loaded: LoadedSession;
}

function commandOf(
  { instance, limits, clock }: Pick<RunContext, 'instance' | 'limits' | 'clock'>,
  { agent, new_session, input, claim }: RunRequest,
  { settings, loaded }: Start,
): SessionCommand {
  const { state, history } = loaded;
  return {
    type: 'start_turn',
    agent_id: agent.agent_id,
    new_session,
    turn: {
      input,
      agent_revision: agent.revision,
      model: agent.model,
      settings,
      context_from_turn: history[0]?.turn ?? (state.status === 'none' ? 1 : state.turn + 1),
      owner: instance.id,
      deadline: isoTime(clock.now() + limits.timeoutMs),
      ...(claim && { idempotency_key: claim.request_id }),
    },
  };
}

/**
 * Decides `turn_started`, and appends it to the session as it was loaded.
 * Errors: Rejection, `stream_conflict`, `payload_too_large`, `store_unavailable`: it may have been
 * written all the same, or be written yet, which is noted in `leftOpen`.
 */
export async function startTurn(
  context: RunContext,
  request: RunRequest,
  start: Start,
): Promise<Omit<OpenRun, 'hold'>> {
  const { settings, loaded } = start;
  const { session_id, actor } = request;
  const startedAt = performance.now();
  const events = session.decide(commandOf(context, request, start), loaded.state);
  const target = { stream: sessionStream(session_id), head: loaded.head };
  try {
    const facts = await factsOf(context, authorOf(actor), loaded.head, events);
    const { head, lastEventId } = await appendFacts(context.store, target, facts);
    return {
      request,
      state: events.reduce(session.evolve, loaded.state) as RunningSession,
      settings,
      history: loaded.history,
      turn: turnsOf(events)[0]!,
      causation_id: lastEventId,
      head,
      startedAt,
    };
  } catch (error) {
    if (isLogAway(error)) context.sessions.leftOpen.add(session_id, loaded.head.revision + 1);
    if (isTurnlogError(error, 'event_invalid'))
      throw new TurnlogError('payload_too_large', 'The input is too large to be recorded.', {
        cause: error,
      });
    throw error;
  }
}
