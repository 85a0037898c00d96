import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { errorSummary } from '../lib/errors/errorSummary.ts';
import { resolvesWithin } from '../lib/time/resolvesWithin.ts';
import { loggedRequestId, waitUntilTurnVisible, type Actor } from '../commandHandling/context.ts';
import { finishTurn } from './finishTurn.ts';
import { turnOf } from './recordTurn.ts';
import { startOnce, type StartedRun } from './startOnce.ts';
import { startTurn } from './startTurn.ts';
import type { OpenRun, RunContext } from './context.ts';
import { promptBytes } from './model/contextWindow.ts';
import { isPreparationCurrent, prepareRun } from './prepareRun.ts';
import type { RunInput } from './runRequest.ts';
import type { RunResult } from './runResult.ts';
import type { RunInFlight } from './queueing/runsInFlight.ts';
import type { TurnRef } from './queueing/turnWatch.ts';

/** A started turn, and the resources that its run holds until it ends. */
interface RunningTurn {
  run: OpenRun;
  inFlight: RunInFlight;
  held: DisposableStack;
}

/** Waits for the session and for capacity, and starts the turn. */
async function beginTurn(context: RunContext, actor: Actor, input: RunInput): Promise<RunningTurn> {
  const { limits } = context;
  const { acquireUserRun, admission, runsInFlight, sessionQueue } = context.runState;
  const { account_id } = actor;
  const accountLimits = await context.accountLimits(account_id);
  using resources = new DisposableStack();
  // The permit of the request is released with its response, which a run in the background outlasts.
  if (actor.chat) resources.use(acquireUserRun(actor.chat));
  const permit = admission.enqueue(account_id, Buffer.byteLength(input.input), accountLimits);
  resources.defer(permit.release);
  const prepared = input.claim?.prepared;
  const { agent, session_id, new_session } =
    prepared && isPreparationCurrent(prepared, runsInFlight, performance.now())
      ? prepared
      : await prepareRun(context, actor, input);
  const request = { ...input, actor, agent, session_id, new_session };
  const ownBytes = promptBytes(request, []);
  permit.hold(ownBytes);
  const inFlight = runsInFlight.start({ account_id, agent_id: agent.agent_id, session_id });
  resources.defer(inFlight.end);
  const { startSignal: signal, setOrigins } = inFlight;
  const stopWatching = context.onClientDisconnect?.(inFlight.cancelStart);
  if (stopWatching) resources.defer(stopWatching);
  const until = performance.now() + limits.waitMs;
  resources.defer(await sessionQueue.acquire(session_id, limits.waitMs, signal));
  const waitMs = Math.max(0, until - performance.now());
  await permit.acquire(ownBytes, waitMs, signal);
  const run = await startTurn(context, request, { permit, signal, setOrigins });
  // Streams, the feed and webhooks name the session before the turn ends.
  context.readModels.showLater?.({ position: run.position, account_id, session_id });
  resources.defer(run.publisher.publishEnd);
  resources.use(run.held);
  return { run, inFlight, held: resources.move() };
}

/** Finishes the turn, and releases the resources of its run. */
async function completeRun(
  context: RunContext,
  { run, inFlight, held }: RunningTurn,
): Promise<RunResult> {
  using _held = held;
  try {
    return await finishTurn(context, run, inFlight);
  } catch (error) {
    // The end of the turn may not be recorded: the client can read the turn.
    throw isTurnlogError(error) && !error.turn ? error.withTurn(turnOf(run)) : error;
  }
}

async function startNow(context: RunContext, actor: Actor, input: RunInput): Promise<StartedRun> {
  const turn = await beginTurn(context, actor, input);
  const result = completeRun(context, turn);
  // The caller may await the result later, or never.
  result.catch(() => undefined);
  const { request, state, position } = turn.run;
  return { session_id: request.session_id, turn: state.turn, position, result };
}

/**
 * Starts a run. Resolves as soon as its turn has started and is recorded. Errors: those of runAgent
 * that occur before the model is called.
 */
export async function startRun(
  context: RunContext,
  actor: Actor,
  input: RunInput,
): Promise<StartedRun> {
  const { claim, session_id = claim?.reserved.id } = input;
  const start = (): Promise<StartedRun> => startNow(context, actor, input);
  return claim && session_id !== undefined
    ? startOnce(context, { account_id: actor.account_id, session_id, claim }, start)
    : start();
}

/**
 * Runs one turn of a session: starts it, lets the model answer, records the end, and only then
 * resolves. The result is durable, and visible to every later query.
 * Errors: `agent_not_found`, `session_not_found` and the session's rejections, `session_erased`,
 * `origin_erased`, `agent_erased`, `model_not_supported`, `tool_not_supported`, `session_busy`,
 * `stream_damaged`, `invalid_request`, `rate_limited` (the account or the end user has its share),
 * `overloaded` (the process is full), `model_error`, `model_overloaded`, `model_timeout`,
 * `tool_error`, `turn_interrupted`, `store_unavailable`, and `idempotency_in_progress` for a retried
 * request. From `model_error` on, the turn is recorded as failed (or interrupted, by a shutdown), and
 * the next run continues the session; while the store is unavailable, the turn stays open until it is
 * back.
 */
export async function runAgent(
  context: RunContext,
  actor: Actor,
  input: RunInput,
): Promise<RunResult> {
  if (!input.claim) return completeRun(context, await beginTurn(context, actor, input));
  const started = await startRun(context, actor, input);
  return started.resultWithin?.(context.limits.waitMs) ?? started.result;
}

/** A run that continues in the background, or the result of a run that ended in time. */
type BackgroundStart = { running: TurnRef } | { result: RunResult };

/**
 * Starts a run that continues in the background. Resolves when its turn is recorded and visible or,
 * if it ends within `waitMs`, with its result. Errors: those of runAgent.
 */
export async function startInBackground(
  context: RunContext,
  actor: Actor,
  { waitMs, ...input }: RunInput & { waitMs: number },
): Promise<BackgroundStart> {
  const started = await startRun(context, actor, { ...input, deltas: 'followers' });
  const { session_id, turn, position } = started;
  const write = { position, account_id: actor.account_id, session_id };
  if (started.resultWithin) {
    // The attempt that started the turn logs its failure.
    const result = waitMs > 0 ? await resultInTime(started.resultWithin(waitMs)) : undefined;
    if (result) return { result };
    context.onIdempotentReplay?.();
    await waitUntilTurnVisible(context, write);
    return { running: { session_id, turn } };
  }
  const ending = started.result.finally(() => context.runState.turnWatch.notifyOthers(session_id));
  if (waitMs > 0 && (await resolvesWithin(ending, waitMs))) return { result: await started.result };
  ending.catch((error: unknown) => {
    // The turn records the failure, and a failure of the model is logged with it.
    const isDefect = !isTurnlogError(error) || error.code === 'internal_error';
    const level = isDefect ? 'error' : 'info';
    const fields = { request_id: loggedRequestId(actor), session_id, turn, ...errorSummary(error) };
    context.logger[level](fields, 'a run in the background ended without an answer');
  });
  await waitUntilTurnVisible(context, write);
  return { running: { session_id, turn } };
}

/** Resolves with undefined for a turn that did not end in time. */
const resultInTime = (result: Promise<RunResult>): Promise<RunResult | undefined> =>
  result.catch((error: unknown) => {
    if (!isTurnlogError(error, 'idempotency_in_progress')) throw error;
    return undefined;
  });
