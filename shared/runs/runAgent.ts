import type { ModelCall } from '../sessions/turns/promptParts.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { isIdOf, sessionStream } from '../eventlog/streams.ts';
import { findOwnAgent } from '../agents/queries.ts';
import { requireSupported } from '../agents/catalogue.ts';
import { waitUntilTurnVisible, type Actor } from '../commandHandling/context.ts';
import { startOnce, type StartedRun } from './startOnce.ts';
import { startTurn } from './startTurn.ts';
import type { OpenRun, RunContext } from './context.ts';
import { promptBytes } from './model/contextWindow.ts';
import type { RunInput, RunRequest } from './runRequest.ts';
import { runModelLoop, type TurnAnswer } from './model/modelLoop.ts';
import { failTurnCommand, interruptTurnCommand, recordFailure } from './finishTurn.ts';
import { recordTurnEnd } from './recordTurn.ts';
import { runResultOf, type RunResult } from './runResult.ts';
import type { RunInFlight } from './queueing/runsInFlight.ts';
import { requireOwnSession, sessionOfAgentNotFound } from './queueing/loadSessionForRun.ts';
import { turnEndedError } from './queueing/turnWatch.ts';
import type { Reserved } from '../requests/events.ts';

/**
 * What a run needs before it waits for anything: its agent, and that the session is its own.
 * Errors: `agent_not_found`, `agent_erased`, `model_not_supported`, `tool_not_supported`, `session_not_found`,
 * `store_unavailable`.
 */
export async function prepareRunRequest(
  context: RunContext,
  actor: Actor,
  asked: RunInput,
): Promise<RunRequest> {
  const { cachedRows, catalogue, ids } = context;
  const { session_id = asked.claim?.reserved.id ?? ids.typeId('session') } = asked;
  const agent =
    asked.replay?.agent ?? (await findOwnAgent(cachedRows, actor.account_id, asked.agent_id));
  // What a replay calls of its tools, if anything, it finds out when it calls it.
  requireSupported(catalogue, agent.model, (!asked.replay && agent.tool) || undefined);
  if (!isIdOf('session', session_id)) throw sessionOfAgentNotFound();
  const new_session = asked.session_id === undefined;
  const request = { ...asked, actor, agent, session_id, new_session };
  const instruction = await requireOwnSession(context, request);
  // What a replay runs with it has chosen.
  return asked.replay || instruction === undefined
    ? request
    : { ...request, agent: { ...agent, instruction } };
}

/**
 * Resolves as soon as the turn has begun, and so is recorded. Errors: those of runAgent that come
 * before it.
 */
export async function startRun(
  context: RunContext,
  actor: Actor,
  input: RunInput,
): Promise<StartedRun> {
  const { claim, session_id = claim?.reserved.id } = input;
  const begin = (): Promise<StartedRun> => beginNow(context, actor, input);
  return claim && session_id !== undefined
    ? startOnce(context, { account_id: actor.account_id, session_id, claim }, begin)
    : begin();
}

function beginNow(context: RunContext, actor: Actor, input: RunInput): Promise<StartedRun> {
  const { promise, resolve, reject } = Promise.withResolvers<StartedRun>();
  const ended = runTurn(context, actor, input, ({ request, state, position }) =>
    resolve({ session_id: request.session_id, turn: state.turn, result: ended, position }),
  );
  ended.catch(reject);
  return promise;
}

/**
 * One turn of a session: begins it, lets the model answer, records the end, and only then
 * resolves. What resolved is durable and shown by every later query.
 * Errors: `agent_not_found`, `session_not_found` and the session's rejections, `session_erased`, `origin_erased`,
 * `agent_erased`,
 * `model_not_supported`, `tool_not_supported`, `session_busy`, `stream_damaged`, `invalid_request`,
 * `rate_limited` (the account has its share in flight), `overloaded` (the process has),
 * `model_error`, `model_overloaded`, `model_timeout`, `tool_error`, `turn_interrupted`,
 * `store_unavailable`, and `idempotency_in_progress` for a request that came before. From `model_error` on, the turn is recorded as failed (or interrupted, in a
 * shut-down) and the session goes on with the next run; where the store is away then, the turn is
 * closed as soon as it is back.
 */
export async function runAgent(
  context: RunContext,
  actor: Actor,
  input: RunInput,
): Promise<RunResult> {
  if (!input.claim) return runTurn(context, actor, input, () => undefined);
  const begun = await startRun(context, actor, input);
  return begun.resultWithin?.(context.limits.waitMs) ?? begun.result;
}

async function runTurn(
  context: RunContext,
  actor: Actor,
  input: RunInput,
  onBegun: (run: OpenRun) => void,
): Promise<RunResult> {
  const { runState, limits, accountLimits } = context;
  const { account_id } = actor;
  const own = await accountLimits(account_id);
  const arrival = runState.admission.enqueue(account_id, Buffer.byteLength(input.input), own);
  try {
    const request = await prepareRunRequest(context, actor, input);
    const { agent_id, session_id } = request;
    return await runState.runsInFlight.track(
      { account_id, agent_id, session_id },
      async (inFlight) => {
        const { startSignal: signal } = inFlight;
        const stopWatching = context.onClientDisconnect?.(inFlight.cancelStart);
        let leave: (() => void) | undefined;
        try {
          const until = performance.now() + limits.waitMs;
          leave = await runState.sessionQueue.acquire(request.session_id, limits.waitMs, signal);
          const waitMs = Math.max(0, until - performance.now());
          await arrival.acquire(promptBytes(request, []), waitMs, signal);
          const { setOrigins } = inFlight;
          const open = await startTurn(context, request, { arrival, signal, setOrigins });
          onBegun(open);
          inFlight.startTimeout(limits.timeoutMs);
          return await finishWatchedTurn(context, open, inFlight).finally(
            open.publisher.publishEnd,
          );
        } finally {
          stopWatching?.();
          leave?.();
        }
      },
    );
  } finally {
    arrival.release();
  }
}

/** Finishes the turn, unless somebody else ends it meanwhile, and tells who waits for its end. */
async function finishWatchedTurn(
  context: RunContext,
  run: OpenRun,
  inFlight: RunInFlight,
): Promise<RunResult> {
  const { turnWatch } = context.runState;
  const turn = { session_id: run.request.session_id, turn: run.state.turn };
  const unwatch = turnWatch.subscribe({
    ...turn,
    by: 'run',
    revision: run.head.revision,
    onEnd: (end) => inFlight.interrupt(turnEndedError(end)),
  });
  try {
    return await finishTurn(context, run, inFlight);
  } finally {
    unwatch();
    turnWatch.notifyEnded(turn, 'ended');
  }
}

async function finishTurn(
  context: RunContext,
  run: OpenRun,
  inFlight: RunInFlight,
): Promise<RunResult> {
  const calls: ModelCall[] = [];
  let answer: TurnAnswer;
  try {
    answer = await runModelLoop(context, run, calls, inFlight.signal);
  } catch (error) {
    if (isTurnlogError(error, 'turn_interrupted')) throw error;
    const reason: unknown = inFlight.signal.aborted ? inFlight.signal.reason : error;
    // Whoever cancelled the turn or erased the session has ended it.
    if (isTurnlogError(reason, 'turn_interrupted')) throw reason;
    if (isTurnlogError(reason, 'session_erased')) throw reason;
    const end = inFlight.isInterrupted()
      ? interruptTurnCommand(run, reason)
      : failTurnCommand(run, calls, reason);
    throw await recordFailure(context, run, end, reason);
  }
  try {
    const end = { type: 'complete_turn', run: run.state, answer } as const;
    await waitUntilTurnVisible(context, await recordTurnEnd(context, run, end));
  } catch (error) {
    if (!isTurnlogError(error, 'event_invalid')) throw error;
    throw await recordFailure(context, run, failTurnCommand(run, calls, error), error);
  }
  return runResultOf(run.request.session_id, answer, run.context);
}

/**
 * What the first try of a run fixes: the id of its new session, or where in the session its turn is
 * looked for. Errors: those of a run that come before it waits.
 */
export async function reserveRun(
  context: RunContext,
  actor: Actor,
  input: RunInput,
): Promise<Reserved> {
  const { session_id, new_session } = await prepareRunRequest(context, actor, input);
  if (new_session) return { id: session_id };
  const [last] = await context.store.readStream(sessionStream(session_id), {
    direction: 'backwards',
    limit: 1,
  });
  return last ? { revision: last.revision } : {};
}
