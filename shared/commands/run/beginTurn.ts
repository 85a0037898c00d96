import type { ChatSettings } from '../../domain/session/chat.ts';
import { Rejection } from '../../domain/rejection.ts';
import { isTurnlogError, TurnlogError } from '../../errors.ts';
import { createConflictLimit, type ConflictLimit } from '../../eventlog/conflictLimit.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { pauseFor, type Bounds } from '../../pause.ts';
import { isoTime } from '../../ports/clock.ts';
import type { AgentRow } from '../../readModels/tables.ts';
import type { Actor } from '../context.ts';
import type { OpenRun, RunContext } from './context.ts';
import { historyBudget } from './contextWindow.ts';
import { closeOrphan } from '../recovery/interruptTurn.ts';
import { record } from './record.ts';
import { damagedForClient, sessionNotFound, sessionOfRun } from './sessionOfRun.ts';
import { sessionBusy } from './sessionQueue.ts';

export interface TurnRequest {
  actor: Actor;
  agent: AgentRow;
  session_id: string;
  new_session: boolean;
  input: string;
}

const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 250;

async function settingsFor(
  { models, toolbox }: RunContext,
  agent: AgentRow,
): Promise<ChatSettings> {
  const model = models.find(agent.model)!;
  return {
    model: model.upstream_model,
    ...(model.max_output_tokens === undefined
      ? {}
      : { max_completion_tokens: model.max_output_tokens }),
    ...(agent.tool === null ? {} : { tools: await toolbox.definitions(agent.tool) }),
  };
}

interface Attempt {
  settings: ChatSettings;
  /** Left for earlier turns. */
  tokens: number;
  conflicts: ConflictLimit;
  bounds: Bounds;
}

/**
 * Load → decide → append `turn_started` at the revision read. While another run holds the session it waits and tries again
 * until the wait limit. A turn that nobody runs any more is closed first.
 * Errors: `session_not_found`, `session_busy`, `stream_damaged`, `invalid_request` (too long for the model),
 * `payload_too_large`, `store_unavailable`, the signal's reason.
 */
export async function beginTurn(
  context: RunContext,
  request: TurnRequest,
  signal: AbortSignal,
): Promise<OpenRun> {
  const bounds = { until: performance.now() + context.limits.waitMs, signal };
  const settings = await settingsFor(context, request.agent);
  const tokens = await historyBudget(context.budget, context.models.find(request.agent.model)!, {
    settings,
    instruction: request.agent.instruction,
    input: request.input,
  });
  const conflicts = createConflictLimit(context, sessionStream(request.session_id), {
    ...bounds,
    tooMany: sessionBusy,
  });
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const run = await attempt(context, request, { settings, tokens, conflicts, bounds }).catch(
      async (error: unknown) => {
        throw await damagedForClient(context, request, error);
      },
    );
    if (run === 'moved') continue;
    if (run !== 'held') return run;
    if (performance.now() + pause > bounds.until) throw sessionBusy();
    await pauseFor(pause, signal);
  }
}

/** One pass of the loop. `held` while the session is another run's, `moved` when it has to be loaded again. */
async function attempt(
  context: RunContext,
  request: TurnRequest,
  { settings, tokens, conflicts, bounds }: Attempt,
): Promise<OpenRun | 'held' | 'moved'> {
  const { actor, agent, session_id, input } = request;
  const loaded = await sessionOfRun(context, request, tokens, bounds);
  if (loaded.state.status === 'running' && loaded.state.agent_id === agent.agent_id) {
    // This run holds the session's place in the queue, so nothing in this process runs that turn.
    const found = await closeOrphan(context, session_id, loaded);
    if (found === 'moved') await conflicts.lost(loaded.head.revision);
    return found === 'running' ? 'held' : 'moved';
  }
  const startedAt = context.clock.now();
  const turn = loaded.state.status === 'none' ? 1 : loaded.state.turn + 1;
  const started = {
    input,
    agent_revision: agent.revision,
    model: agent.model,
    settings,
    context_from_turn: loaded.history[0]?.turn ?? turn,
    owner: context.instanceId,
    deadline: isoTime(startedAt + context.limits.timeoutMs),
  };
  try {
    const { head, lastEventId } = await record(
      context,
      { ...actor, causation_id: actor.request_id },
      { session_id, state: loaded.state, head: loaded.head },
      {
        type: 'start_turn',
        agent_id: agent.agent_id,
        new_session: request.new_session,
        turn: started,
      },
    );
    return {
      actor,
      session_id,
      turn,
      state: {
        status: 'running',
        agent_id: agent.agent_id,
        turn,
        owner: started.owner,
        deadline: started.deadline,
      },
      model: agent.model,
      tool: agent.tool ?? undefined,
      instruction: agent.instruction,
      settings,
      history: loaded.history,
      input,
      causation_id: lastEventId,
      head,
      startedAt,
    };
  } catch (error) {
    if (isTurnlogError(error, 'stream_conflict')) {
      await conflicts.lost(loaded.head.revision);
      return 'moved';
    }
    // It may have been written all the same, or be written yet.
    if (isTurnlogError(error, 'store_unavailable'))
      context.leftOpen.add(session_id, loaded.head.revision + 1);
    if (isTurnlogError(error, 'event_invalid'))
      throw new TurnlogError('payload_too_large', 'The input is too large to be recorded.', {
        cause: error,
      });
    if (error instanceof Rejection) throw sessionNotFound();
    throw error;
  }
}
