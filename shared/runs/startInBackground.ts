import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { errorSummary } from '../lib/errors/errorSummary.ts';
import { resolvesWithin } from '../lib/time/resolvesWithin.ts';
import { waitUntilTurnVisible, type Actor } from '../commandHandling/context.ts';
import type { RunContext } from './context.ts';
import type { RunInput } from './runRequest.ts';
import type { RunResult } from './runResult.ts';
import { startRun } from './runAgent.ts';
import type { TurnRef } from './queueing/turnWatch.ts';

/** A run that goes on, or the result of one that was quick enough. */
export type BackgroundStart = { running: TurnRef } | { result: RunResult };

/** Undefined where the turn goes on for longer. */
const resultWithin = (
  endedWithin: (waitMs: number) => Promise<RunResult>,
  waitMs: number,
): Promise<RunResult | undefined> =>
  endedWithin(waitMs).catch((error: unknown) => {
    if (!isTurnlogError(error, 'idempotency_in_progress')) throw error;
    return undefined;
  });

/**
 * Begins a run that goes on by itself. Resolves when its turn is recorded and shown, or, where it
 * ends within `waitMs`, with its result: then a failure is the caller's. Errors: those of runAgent.
 */
export async function startInBackground(
  context: RunContext,
  actor: Actor,
  { waitMs, ...input }: RunInput & { waitMs: number },
): Promise<BackgroundStart> {
  const begun = await startRun(context, actor, { ...input, deltas: true });
  const { session_id, turn, position } = begun;
  if (begun.resultWithin) {
    // Whoever has begun it before looks after it.
    const result = waitMs > 0 ? await resultWithin(begun.resultWithin, waitMs) : undefined;
    if (result) return { result };
    context.onIdempotentReplay?.();
    await waitUntilTurnVisible(context, position);
    return { running: { session_id, turn } };
  }
  const { result: ended } = begun;
  const ending = ended.finally(() => context.runState.turnWatch.notifyOthers(session_id));
  if (waitMs > 0 && (await resolvesWithin(ending, waitMs))) return { result: await ended };
  ending.catch((error: unknown) => {
    // The turn says what became of it, and has its line where its model is to blame.
    const level = isTurnlogError(error) ? 'info' : 'error';
    const fields = { request_id: actor.request_id, session_id, turn, ...errorSummary(error) };
    context.logger[level](fields, 'a run in the background ended without an answer');
  });
  await waitUntilTurnVisible(context, position);
  return { running: { session_id, turn } };
}
