import type { Budget, RunningReplay } from '../../../shared/replays/comparison/turnPair.ts';
import type { ReplayedSession } from '../../../shared/replays/sessionStates.ts';
import { isRejection, Rejection } from '../../../shared/domain/rejection.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { errorSummary } from '../../../shared/lib/errors/errorSummary.ts';
import { createTransientRetry, type RetryTransient } from './transientFailures.ts';
import { openReplayStream, type ReplayStream } from './replayStream.ts';
import { ReplayCancelled, type ReplayRunContext } from './replayContext.ts';
import { createBudget, countUncompared } from './budget.ts';
import { replaySession } from './replaySession.ts';
import { withSessionMemory } from './sessionMemory.ts';

/** Returns true when the replay was cancelled or erased, so that nothing more is recorded. */
const isReplayEnded = (error: unknown): boolean =>
  isRejection(error, 'replay_ended') || isRejection(error, 'replay_missing');

/**
 * A log that calls `onEnded` when a record finds the replay ended: the failure of a record in the background
 * would be noticed only by a later one.
 */
const withEndNoticed = (log: ReplayStream, onEnded: () => void): ReplayStream => ({
  ...log,
  async record(command) {
    try {
      await log.record(command);
    } catch (error) {
      if (isReplayEnded(error)) onEnded();
      throw error;
    }
  },
});

interface ReplayWork {
  replay: RunningReplay;
  log: ReplayStream;
  budget: Budget;
  signal: AbortSignal;
  retry: RetryTransient;
}

/** Replays one session; its failure does not affect other sessions. */
async function runSession(
  replaying: ReplayRunContext,
  work: ReplayWork,
  session: ReplayedSession,
): Promise<void> {
  const { log, budget, signal, replay, retry } = work;
  const { logger, memory } = replaying.context;
  const { account_id } = replay;
  try {
    await withSessionMemory(memory, { account_id, signal }, (sessionMemory) => {
      const state = log.state();
      // After it was postponed, its progress is in the log.
      const latest = ('sessions' in state && state.sessions.get(session.session_id)) || session;
      return replaySession(replaying, { ...work, session: latest, sessionMemory });
    });
  } catch (error) {
    signal.throwIfAborted();
    const { session_id } = session;
    const code =
      isTurnlogError(error) || error instanceof Rejection ? error.code : 'internal_error';
    const failure = { replay_id: replay.replay_id, session_id, ...errorSummary(error) };
    logger.warn(failure, 'a session could not be replayed');
    const other_tokens = budget.uncompared(session_id);
    const end = { status: 'failed', code, ...(other_tokens > 0 && { other_tokens }) } as const;
    const command = { type: 'record_comparison', session_id, end } as const;
    await retry(() => log.record({ ...command, turns: [] }));
  }
}

/**
 * Runs a replay from its current state to its end, several sessions at a time.
 */
export async function runReplay(
  replaying: ReplayRunContext,
  replayId: string,
  stopped: AbortSignal,
): Promise<void> {
  const { context } = replaying;
  const cancelled = new AbortController();
  const signal = AbortSignal.any([stopped, cancelled.signal]);
  const retry = createTransientRetry(context.logger, signal);
  const opened = await retry(() => openReplayStream(context, replayId, signal));
  const log = withEndNoticed(opened, () => cancelled.abort(new ReplayCancelled()));
  const state = log.state();
  if (state.status !== 'running') return;
  const { settings, sessions } = state;
  const { account_id } = log.actor;
  const budget = createBudget(log);
  const work = {
    replay: { replay_id: replayId, account_id, settings },
    log,
    budget,
    signal,
    retry,
  };
  const unended = sessions.all().filter(({ ended }) => !ended);
  for (const session of unended)
    await retry(() =>
      withSessionMemory(context.memory, { account_id, signal }, () =>
        countUncompared(context, work, session),
      ),
    );
  const remaining = unended.values();
  const replayRemaining = async (): Promise<void> => {
    for (const session of remaining) {
      // A session that has begun may have replayed turns that are not compared.
      if (session.replay_session_id === undefined && budget.isSpent()) continue;
      await runSession(replaying, work, session);
    }
  };
  const lanes = Array.from({ length: settings.concurrency }, replayRemaining);
  const results = await Promise.allSettled(lanes);
  stopped.throwIfAborted();
  if (cancelled.signal.aborted) return;
  const failed = results.find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
  const finalState = log.state();
  const allEnded =
    'sessions' in finalState && finalState.sessions.all().every(({ ended }) => ended);
  const status = allEnded ? 'completed' : 'budget_exhausted';
  await retry(() => log.record({ type: 'end_replay', status }));
}
