import type { CommandOf } from '../sessions/decider.ts';
import { failedTurn, turnFailureError } from '../sessions/turns/turnFailure.ts';
import type { ModelCall } from '../sessions/turns/promptParts.ts';
import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import { errorSummary } from '../lib/errors/errorSummary.ts';
import {
  loggedRequestId,
  waitUntilTurnVisible,
  type VisibilityContext,
} from '../commandHandling/context.ts';
import type { ModelContext, OpenRun, RunSlice } from './context.ts';
import {
  ResponseFormatError,
  runModelLoop,
  sumTokens,
  type TurnAnswer,
} from './model/modelLoop.ts';
import type { RunInFlight } from './queueing/runsInFlight.ts';
import { turnEndedError, type TurnEnding } from './queueing/turnWatch.ts';
import { recordTurnEnd, turnOf, type RecordTurnContext } from './recordTurn.ts';
import { toRunResult, type RunResult } from './runResult.ts';

type FinishTurnContext = ModelContext &
  RecordTurnContext &
  VisibilityContext &
  RunSlice<'limits', 'openTurnQueue' | 'turnWatch'>;

type FailureCommand = CommandOf<'interrupt_turn' | 'fail_turn'>;

/**
 * The command for an interrupted turn: its agent or a session in its prompt was erased, or the
 * service is shutting down.
 */
const interruptTurnCommand = ({ state: { turn } }: OpenRun, reason: unknown): FailureCommand =>
  isTurnlogError(reason, 'agent_erased') || isTurnlogError(reason, 'origin_erased')
    ? { type: 'interrupt_turn', turn, reason: 'cancelled' }
    : { type: 'interrupt_turn', turn, reason: 'crash', cause: 'shutdown' };

const INTERNAL_ERROR = {
  code: 'internal_error',
  message: 'The run failed for a reason of the service itself; its log says more.',
};

/** The command for a turn that failed with `thrown`. `calls` are the answered model calls. */
function failTurnCommand({ state }: OpenRun, calls: ModelCall[], thrown: unknown): FailureCommand {
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

/** For the client, an event that the store rejects means that the model's answer is too large. */
const toClientError = (error: unknown): unknown =>
  isTurnlogError(error, 'event_invalid')
    ? new TurnlogError('model_error', 'The model answered more than can be recorded.', {
        cause: error,
      })
    : error;

/** The error for the client: it says what the turn's end says, and when to try again. */
function errorOfEnd(run: OpenRun, end: FailureCommand, error: unknown): TurnlogError {
  if (end.type === 'interrupt_turn')
    return turnEndedError(end.cause ?? end.reason, turnOf(run), error);
  const { details, retriable, retryAfterSeconds } = isTurnlogError(error) ? error : {};
  return turnFailureError(failedTurn(end.failure), turnOf(run), {
    ...(details && { details }),
    ...(retriable && { retriable }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    cause: error,
  });
}

/**
 * Records the end of a failed turn and logs the failure; an interruption is only logged with the
 * request. Resolves with the error for the client.
 */
async function recordFailure(
  context: FinishTurnContext,
  run: OpenRun,
  end: FailureCommand,
  thrown: unknown,
): Promise<TurnlogError> {
  const { actor, agent, session_id } = run.request;
  const error = toClientError(thrown);
  if (end.type !== 'interrupt_turn')
    context.logger.warn(
      {
        request_id: loggedRequestId(actor),
        session_id,
        turn: run.state.turn,
        provider: context.catalogue.models.find(agent.model)?.provider,
        ...errorSummary(error),
      },
      'a turn ended without an answer',
    );
  await waitUntilTurnVisible(context, await recordTurnEnd(context, run, end));
  return errorOfEnd(run, end, error);
}

/**
 * Lets the model answer, and records the end of the turn. Stops when the turn is ended from
 * outside.
 */
export async function finishTurn(
  context: FinishTurnContext,
  run: OpenRun,
  inFlight: RunInFlight,
): Promise<RunResult> {
  inFlight.startTimeout(context.limits.timeoutMs);
  const { openTurnQueue, turnWatch } = context.runState;
  const turn = turnOf(run);
  const stopped = Promise.withResolvers<void>();
  let ending: Promise<TurnEnding> | undefined;
  const unsubscribe = turnWatch.subscribe({
    ...turn,
    by: 'run',
    revision: run.head.revision,
    onEnd: (end) => inFlight.interrupt(turnEndedError(end, turn)),
    onStop(cancellation) {
      ending = cancellation;
      inFlight.interrupt(turnEndedError('cancelled', turn));
      return stopped.promise;
    },
  });
  try {
    const calls: ModelCall[] = [];
    const answer = await answerTurn(context, run, calls, inFlight).finally(stopped.resolve);
    return await completeTurn(context, run, calls, answer);
  } catch (error) {
    // The client, and the next run of the session, then find the recorded end.
    if (ending && isTurnlogError(error, 'turn_interrupted')) {
      const recorded = await ending.catch(() => undefined);
      if (!recorded?.appended) openTurnQueue.add(turn.session_id, run.head.revision + 1);
    }
    throw error;
  } finally {
    unsubscribe();
    turnWatch.notifyEnded(turn, 'ended');
  }
}

async function answerTurn(
  context: FinishTurnContext,
  run: OpenRun,
  calls: ModelCall[],
  inFlight: RunInFlight,
): Promise<TurnAnswer> {
  try {
    return await runModelLoop(context, run, calls, inFlight.signal);
  } catch (error) {
    if (isTurnlogError(error, 'turn_interrupted')) throw error;
    const reason: unknown = inFlight.signal.aborted ? inFlight.signal.reason : error;
    // The end of the turn was already recorded by a cancellation or an erasure.
    if (isTurnlogError(reason, 'turn_interrupted')) throw reason;
    if (isTurnlogError(reason, 'session_erased')) throw reason;
    const end = inFlight.isInterrupted()
      ? interruptTurnCommand(run, reason)
      : failTurnCommand(run, calls, reason);
    throw await recordFailure(context, run, end, reason);
  }
}

async function completeTurn(
  context: FinishTurnContext,
  run: OpenRun,
  calls: ModelCall[],
  answer: TurnAnswer,
): Promise<RunResult> {
  try {
    const end = { type: 'complete_turn', run: run.state, answer } as const;
    await waitUntilTurnVisible(context, await recordTurnEnd(context, run, end));
  } catch (error) {
    if (!isTurnlogError(error, 'event_invalid')) throw error;
    throw await recordFailure(context, run, failTurnCommand(run, calls, error), error);
  }
  return toRunResult(run.request.session_id, answer, run.context);
}
