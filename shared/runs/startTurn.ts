import { session } from '../sessions/decider.ts';
import type { RunningSession, SessionCommand } from '../sessions/commands.ts';
import type { ChatSettings } from '../sessions/turns/chat.ts';
import { turnsOf } from '../sessions/turns/prompt.ts';
import { isLogUnavailable, isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { isoTime } from '../ports/clock.ts';
import { appendFacts, authorOf, factsOf } from '../commandHandling/recordEvents.ts';
import type { OpenRun, RunContext } from './context.ts';
import type { RunRequest } from './runRequest.ts';
import { summaryNamed } from '../sessions/history/summaryOf.ts';
import type { SessionForRun } from './queueing/acquireSession.ts';
import type { TurnContext } from '../sessions/turns/promptParts.ts';

/** What a run knows when it asks for its turn. */
interface Start {
  settings: ChatSettings;
  loaded: SessionForRun;
}

/** How much of the session the model sees. */
export function contextOf({
  state,
  history,
  turns,
  summary,
  shown,
  whole,
}: SessionForRun): TurnContext {
  const before = state.status === 'none' ? 0 : state.turn;
  const oldest = history[0]?.turn ?? before + 1;
  const all = whole && history.length === turns.length;
  // Of a summary that is left out, the turns are, too.
  const hidden = shown ? shown.dropped : (summary?.up_to_turn ?? 0);
  return {
    turns: history.length,
    dropped: all ? hidden : oldest - 1 - (shown ? shown.up_to_turn - shown.dropped : 0),
    ...(shown && { compacted: shown.up_to_turn }),
  };
}

function commandOf(
  { instance, limits, clock }: Pick<RunContext, 'instance' | 'limits' | 'clock'>,
  { agent, session_id, new_session, input, claim, replay }: RunRequest,
  { settings, loaded }: Start,
): SessionCommand {
  const { state, history, summary } = loaded;
  return {
    type: 'start_turn',
    agent_id: agent.agent_id,
    new_session,
    ...(replay && { replay }),
    turn: {
      input,
      agent_revision: agent.revision,
      model: agent.model,
      settings,
      context_from_turn: history[0]?.turn ?? (state.status === 'none' ? 1 : state.turn + 1),
      context: contextOf(loaded),
      ...(summary && summaryNamed(summary, session_id)),
      owner: instance.id,
      deadline: isoTime(clock.now() + limits.timeoutMs),
      ...(replay && { replay_of: replay.turn }),
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
): Promise<Omit<OpenRun, 'hold' | 'live'>> {
  const { settings, loaded } = start;
  const { session_id, actor } = request;
  const startedAt = performance.now();
  const events = session.decide(commandOf(context, request, start), loaded.state);
  const target = { stream: sessionStream(session_id), head: loaded.head };
  try {
    const facts = await factsOf(context, authorOf(actor), loaded.head, events);
    const { head, position, lastEventId } = await appendFacts(context.store, target, facts);
    return {
      request,
      state: events.reduce(session.evolve, loaded.state) as RunningSession,
      settings,
      history: loaded.history,
      summary: loaded.shown,
      context: contextOf(loaded),
      turn: turnsOf(events)[0]!,
      causation_id: lastEventId,
      position,
      head,
      startedAt,
    };
  } catch (error) {
    if (isLogUnavailable(error))
      context.sessions.leftOpen.add(session_id, loaded.head.revision + 1);
    if (isTurnlogError(error, 'event_invalid'))
      throw new TurnlogError('payload_too_large', 'The input is too large to be recorded.', {
        cause: error,
      });
    throw error;
  }
}
