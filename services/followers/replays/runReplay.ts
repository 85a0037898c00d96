import type { Budget, RunningReplay } from '../../../shared/replays/comparison/turnPair.ts';
import type { ReplayedSession } from '../../../shared/replays/sessionStates.ts';
import { isRejection, Rejection } from '../../../shared/domain/rejection.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { errorSummary } from '../../../shared/lib/errors/errorSummary.ts';
import { retryTransient } from './transientFailures.ts';
import { openReplayStream, type ReplayStream } from './replayStream.ts';
import type { ReplayRunContext } from './replayContext.ts';
import { createBudget } from './budget.ts';
import { countUncompared } from './countUncompared.ts';
import { replaySession } from './replaySession.ts';

/** True where the replay was cancelled, or erased, and so nothing of it is to be recorded. */
const isOver = (error: unknown): boolean =>
  isRejection(error, 'replay_ended') || isRejection(error, 'replay_missing');

interface Work {
  replay: RunningReplay;
  log: ReplayStream;
  budget: Budget;
  signal: AbortSignal;
}

/** Replays one session; what keeps it from being replayed keeps back no other. */
async function oneSession(
  replaying: ReplayRunContext,
  work: Work,
  session: ReplayedSession,
): Promise<void> {
  const { log, budget, signal } = work;
  const { logger } = replaying.context;
  try {
    await replaySession(replaying, { ...work, session });
  } catch (error) {
    signal.throwIfAborted();
    if (isOver(error)) throw error;
    const { session_id } = session;
    const code =
      isTurnlogError(error) || error instanceof Rejection ? error.code : 'internal_error';
    const failure = { replay_id: work.replay.replay_id, session_id, ...errorSummary(error) };
    logger.warn(failure, 'a session could not be replayed');
    const other_tokens = budget.uncompared(session_id);
    const end = { status: 'failed', code, ...(other_tokens > 0 && { other_tokens }) } as const;
    const told = { type: 'record_comparison', session_id, end } as const;
    await retryTransient(() => log.record({ ...told, turns: [] }), { signal, logger });
  }
}

/**
 * Runs a replay from where it is to its end, so many sessions at a time. Errors: the signal's
 * reason, those of reading its stream.
 */
export async function runReplay(
  replaying: ReplayRunContext,
  replayId: string,
  signal: AbortSignal,
): Promise<void> {
  const { context } = replaying;
  const patience = { signal, logger: context.logger };
  const log = await retryTransient(() => openReplayStream(context, replayId), patience);
  const state = log.state();
  if (state.status !== 'running') return;
  const { settings, sessions } = state;
  const { account_id } = log.actor;
  const budget = createBudget(log);
  const work = { replay: { replay_id: replayId, account_id, settings }, log, budget, signal };
  const unended = sessions.all().filter(({ ended }) => !ended);
  for (const session of unended)
    await retryTransient(() => countUncompared(context, work, session), patience);
  const left = unended.values();
  const lane = async (): Promise<void> => {
    for (const session of left) {
      // Of one that has begun, turns may be done that are not compared.
      if (session.replay_session_id === undefined && budget.isSpent()) continue;
      await oneSession(replaying, work, session);
    }
  };
  const lanes = Array.from({ length: settings.concurrency }, lane);
  const ended = await Promise.allSettled(lanes);
  signal.throwIfAborted();
  const failed = ended.find((one) => one.status === 'rejected');
  if (failed) {
    if (isOver(failed.reason)) return;
    throw failed.reason;
  }
  const now = log.state();
  const all = 'sessions' in now && now.sessions.all().every(({ ended: done }) => done);
  const status = all ? 'completed' : 'budget_exhausted';
  await retryTransient(() => log.record({ type: 'end_replay', status }), patience);
}
