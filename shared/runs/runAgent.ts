import type { ModelCall } from '../sessions/turns/promptParts.ts';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { isIdOf } from '../eventlog/streams.ts';
import { findOwnAgent } from '../agents/queries.ts';
import { requireSupported } from '../agents/catalogue.ts';
import { untilTurnShown, type Actor } from '../commandHandling/context.ts';
import { beginOnce, type BegunRun } from './beginOnce.ts';
import { beginTurn } from './beginTurn.ts';
import type { OpenRun, RunContext } from './context.ts';
import { promptBytes } from './model/contextWindow.ts';
import type { RunInput, RunRequest } from './runRequest.ts';
import { converse, type Answer } from './model/converse.ts';
import { failure, interruption, recordFailure } from './failTurn.ts';
import { recordEnd } from './recordTurn.ts';
import { resultOf, type RunResult } from './runResult.ts';
import type { RunInFlight } from './queueing/runsInFlight.ts';
import { requireOwnSession, sessionNotFound } from './queueing/acquireSession.ts';
import { endedByOthers } from './queueing/turnEnds.ts';

/**
 * What a run needs before it waits for anything: its agent, and that the session is its own.
 * Errors: `agent_not_found`, `agent_erased`, `model_not_supported`, `tool_not_supported`, `session_not_found`,
 * `store_unavailable`.
 */
export async function requestOf(
  context: RunContext,
  actor: Actor,
  asked: RunInput,
): Promise<RunRequest> {
  const { known, catalogue, ids } = context;
  const { session_id = asked.claim?.reserved.id ?? ids.typeId('session') } = asked;
  const agent =
    asked.replay?.agent ?? (await findOwnAgent(known, actor.account_id, asked.agent_id));
  // What a replay calls of its tools, if anything, it finds out when it calls it.
  requireSupported(catalogue, agent.model, (!asked.replay && agent.tool) || undefined);
  if (!isIdOf('session', session_id)) throw sessionNotFound();
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
export async function beginRun(
  context: RunContext,
  actor: Actor,
  input: RunInput,
): Promise<BegunRun> {
  const { claim, session_id = claim?.reserved.id } = input;
  const begin = (): Promise<BegunRun> => beginNow(context, actor, input);
  return claim && session_id !== undefined
    ? beginOnce(context, { account_id: actor.account_id, session_id, claim }, begin)
    : begin();
}

function beginNow(context: RunContext, actor: Actor, input: RunInput): Promise<BegunRun> {
  const { promise, resolve, reject } = Promise.withResolvers<BegunRun>();
  const ended = runTurn(context, actor, input, ({ request, state, position }) =>
    resolve({ session_id: request.session_id, turn: state.turn, ended, position }),
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
  const begun = await beginRun(context, actor, input);
  return begun.endedWithin?.(context.limits.waitMs) ?? begun.ended;
}

async function runTurn(
  context: RunContext,
  actor: Actor,
  input: RunInput,
  onBegun: (run: OpenRun) => void,
): Promise<RunResult> {
  const { sessions, limits, accountLimits } = context;
  const { account_id } = actor;
  const own = await accountLimits(account_id);
  const arrival = sessions.admission.arrive(account_id, Buffer.byteLength(input.input), own);
  try {
    const request = await requestOf(context, actor, input);
    const { agent_id, session_id } = request;
    return await sessions.inFlight.track({ account_id, agent_id, session_id }, async (inFlight) => {
      const { waiting: signal } = inFlight;
      const stopWatching = context.whenLeft?.(inFlight.giveUp);
      let leave: (() => void) | undefined;
      try {
        const until = performance.now() + limits.waitMs;
        leave = await sessions.queue.enter(request.session_id, limits.waitMs, signal);
        const waitMs = Math.max(0, until - performance.now());
        await arrival.enter(promptBytes(request, []), waitMs, signal);
        const { drawOn } = inFlight;
        const open = await beginTurn(context, request, { arrival, signal, drawOn });
        onBegun(open);
        inFlight.limit(limits.timeoutMs);
        return await whileWatched(context, open, inFlight).finally(open.live.end);
      } finally {
        stopWatching?.();
        leave?.();
      }
    });
  } finally {
    arrival.leave();
  }
}

/** Finishes the turn, unless somebody else ends it meanwhile, and tells who waits for its end. */
async function whileWatched(
  context: RunContext,
  run: OpenRun,
  inFlight: RunInFlight,
): Promise<RunResult> {
  const { watch } = context.sessions;
  const turn = { session_id: run.request.session_id, turn: run.state.turn };
  const unwatch = watch.watch({
    ...turn,
    by: 'run',
    revision: run.head.revision,
    onEnd: (end) => inFlight.cut(endedByOthers(end)),
  });
  try {
    return await finish(context, run, inFlight);
  } finally {
    unwatch();
    watch.ended(turn, 'ended');
  }
}

async function finish(
  context: RunContext,
  run: OpenRun,
  inFlight: RunInFlight,
): Promise<RunResult> {
  const calls: ModelCall[] = [];
  let answer: Answer;
  try {
    answer = await converse(context, run, calls, inFlight.signal);
  } catch (error) {
    if (isTurnlogError(error, 'turn_interrupted')) throw error;
    const reason: unknown = inFlight.signal.aborted ? inFlight.signal.reason : error;
    // Whoever cancelled the turn or erased the session has ended it.
    if (isTurnlogError(reason, 'turn_interrupted')) throw reason;
    if (isTurnlogError(reason, 'session_erased')) throw reason;
    const end = inFlight.interrupted() ? interruption(run, reason) : failure(run, calls, reason);
    throw await recordFailure(context, run, end, reason);
  }
  try {
    const end = { type: 'complete_turn', run: run.state, answer } as const;
    await untilTurnShown(context, await recordEnd(context, run, end));
  } catch (error) {
    if (!isTurnlogError(error, 'event_invalid')) throw error;
    throw await recordFailure(context, run, failure(run, calls, error), error);
  }
  return resultOf(run.request.session_id, answer, run.context);
}
