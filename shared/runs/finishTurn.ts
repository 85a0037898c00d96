import type { SessionCommand } from '../sessions/commands.ts';
import type { ModelCall } from '../sessions/turns/promptParts.ts';
import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import { errorSummary } from '../lib/errors/errorSummary.ts';
import { waitUntilTurnVisible } from '../commandHandling/context.ts';
import type { OpenRun, RunContext } from './context.ts';
import { sumTokens, ResponseFormatError } from './model/modelLoop.ts';
import { recordTurnEnd } from './recordTurn.ts';
/**
 * How a run ends that was cut off, because its agent or a session that it draws on was erased, or the
 * service is shut down.
 */
export const interruptTurnCommand = (
  { state: { turn } }: OpenRun,
  reason: unknown,
): SessionCommand =>
  isTurnlogError(reason, 'agent_erased') || isTurnlogError(reason, 'origin_erased')
    ? { type: 'interrupt_turn', turn, reason: 'cancelled' }
    : { type: 'interrupt_turn', turn, reason: 'crash', cause: 'shutdown' };

const INTERNAL_ERROR = {
  code: 'internal_error',
  message: 'The run failed for a reason of the service itself; its log says more.',
};

/** How a run ends for which `thrown` is why; `calls` are the model calls that were answered. */
export function failTurnCommand(
  { state }: OpenRun,
  calls: ModelCall[],
  thrown: unknown,
): SessionCommand {
  const error = toClientError(thrown);
  const { code, message } = isTurnlogError(error) ? error : INTERNAL_ERROR;
  const output = error instanceof ResponseFormatError ? error.output : undefined;
  const tokens = calls.length > 0 ? { tokens: sumTokens(calls) } : {};
  return {
    type: 'fail_turn',
    run: state,
    failure: { code, message, calls, ...tokens, ...(output !== undefined && { output }) },
  };
}

/** An event that the store won't take is, to the client, a model that said too much. */
const toClientError = (error: unknown): unknown =>
  isTurnlogError(error, 'event_invalid')
    ? new TurnlogError('model_error', 'The model answered more than can be recorded.', {
        cause: error,
      })
    : error;

/**
 * Closes the turn, and says why in one line of the log; where the service cut it off, the line of
 * the request does. Resolves with the error to answer. Errors: those of recordEnd.
 */
export async function recordFailure(
  context: RunContext,
  run: OpenRun,
  end: SessionCommand,
  thrown: unknown,
): Promise<unknown> {
  const { actor, agent, session_id } = run.request;
  const error = toClientError(thrown);
  if (end.type !== 'interrupt_turn')
    context.logger.warn(
      {
        request_id: actor.request_id,
        session_id,
        turn: run.state.turn,
        provider: context.catalogue.models.find(agent.model)?.provider,
        ...errorSummary(error),
      },
      'a turn ended without an answer',
    );
  await waitUntilTurnVisible(context, await recordTurnEnd(context, run, end));
  return error;
}
