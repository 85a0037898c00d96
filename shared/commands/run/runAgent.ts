import type { SessionCommand } from '../../domain/session/decider.ts';
import type { ModelCall, TurnCompletedData } from '../../domain/session/events.ts';
import type { Tokens } from '../../domain/schema.ts';
import { isTurnlogError, TurnlogError } from '../../errors.ts';
import { findOwnAgent } from '../../queries/agents.ts';
import { untilShown, type Actor } from '../context.ts';
import { requireSupported } from '../createAgent.ts';
import { beginTurn } from './beginTurn.ts';
import type { OpenRun, RunContext } from './context.ts';
import { converse, sumTokens } from './converse.ts';
import { recordEnd } from './record.ts';
import type { RunInFlight } from './runsInFlight.ts';
import { sessionNotFound } from './sessionOfRun.ts';

export interface RunInput {
  agent_id: string;
  input: string;
  session_id?: string;
}

export interface RunResult {
  output: string;
  session_id: string;
  metadata: { model: string; tool_used: string; tokens: Tokens };
}

const SESSION_ID = /^session_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/**
 * One turn of a conversation: begins it, lets the model answer, records the end, and only then resolves. What
 * resolved is durable and shown by every later query.
 * Errors: `agent_not_found`, `session_not_found`, `model_not_supported`, `tool_not_supported`, `session_busy`,
 * `stream_damaged`, `invalid_request`, `model_error`, `model_overloaded`, `model_timeout`, `tool_error`,
 * `turn_interrupted`, `store_unavailable`. From `model_error` on, the turn is recorded as failed (or
 * interrupted, in a shut-down) and the session goes on with the next run; where the store is away then, the
 * turn is closed as soon as it is back.
 */
export async function runAgent(
  context: RunContext,
  actor: Actor,
  input: RunInput,
): Promise<RunResult> {
  const agent = await findOwnAgent(context.known, actor.account_id, input.agent_id);
  requireSupported(context, agent.model, agent.tool ?? undefined);
  if (input.session_id !== undefined && !SESSION_ID.test(input.session_id)) throw sessionNotFound();
  const session_id = input.session_id ?? context.ids.typeId('session');
  return context.inFlight.track(async (inFlight) => {
    const leave = await context.queue.enter(session_id, context.limits.waitMs, inFlight.signal);
    try {
      const run = await beginTurn(
        context,
        {
          actor,
          agent,
          session_id,
          new_session: input.session_id === undefined,
          input: input.input,
        },
        inFlight.signal,
      );
      inFlight.limit(context.limits.timeoutMs);
      return await finish(context, run, inFlight);
    } finally {
      leave();
    }
  });
}

async function finish(
  context: RunContext,
  run: OpenRun,
  inFlight: RunInFlight,
): Promise<RunResult> {
  const calls: ModelCall[] = [];
  let answer: TurnCompletedData;
  try {
    answer = await converse(context, run, calls, inFlight.signal);
  } catch (error) {
    if (isTurnlogError(error, 'turn_interrupted')) throw error;
    const reason: unknown = inFlight.signal.aborted ? inFlight.signal.reason : error;
    throw await recordFailure(
      context,
      run,
      inFlight.interrupted() ? interruption(run) : failure(run, calls, reason),
      reason,
    );
  }
  try {
    await untilShown(context, await recordEnd(context, run, { type: 'complete_turn', answer }));
  } catch (error) {
    if (!isTurnlogError(error, 'event_invalid')) throw error;
    throw await recordFailure(context, run, failure(run, calls, error), error);
  }
  return {
    output: answer.output,
    session_id: run.session_id,
    metadata: { model: answer.model, tool_used: answer.tool_used, tokens: answer.tokens },
  };
}

const interruption = (run: OpenRun): SessionCommand => ({
  type: 'interrupt_turn',
  turn: run.turn,
  reason: 'cancelled',
});

function failure(run: OpenRun, calls: ModelCall[], thrown: unknown): SessionCommand {
  const error = answerable(thrown);
  const { code, message } = isTurnlogError(error)
    ? error
    : {
        code: 'internal_error',
        message: 'The run failed for a reason of the service itself; its log says more.',
      };
  return {
    type: 'fail_turn',
    failure: {
      turn: run.turn,
      code,
      message,
      calls,
      ...(calls.length > 0 ? { tokens: sumTokens(calls) } : {}),
    },
  };
}

/** An event that the store won't take is, to the client, a model that said too much. */
const answerable = (error: unknown): unknown =>
  isTurnlogError(error, 'event_invalid')
    ? new TurnlogError('model_error', 'The model answered more than can be recorded.', {
        cause: error,
      })
    : error;

/** Closes the turn. Resolves with the error to answer. */
async function recordFailure(
  context: RunContext,
  run: OpenRun,
  end: SessionCommand,
  thrown: unknown,
): Promise<unknown> {
  context.logger.warn(
    { err: thrown, session_id: run.session_id, turn: run.turn },
    'a turn ended without an answer',
  );
  await untilShown(context, await recordEnd(context, run, end));
  return answerable(thrown);
}
