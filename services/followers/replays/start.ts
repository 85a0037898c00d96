import { LIMITS } from '../../../shared/limits.ts';
import { publicReason } from '../../../shared/lib/errors/errorSummary.ts';
import { repeatUntilAborted } from '../../../shared/lib/concurrency/repeatUntilAborted.ts';
import { startLeaderTask, type Leadership } from '../../../shared/lib/concurrency/leaderTask.ts';
import type { ReplaysHealth } from '../../../shared/health/health.ts';
import { createReplayBackoff } from './transientFailures.ts';
import { ReplayCancelled, ReplayHandedOver, type ReplayRunContext } from './replayContext.ts';
import { runReplay } from './runReplay.ts';

interface ReplaysOptions {
  replaying: ReplayRunContext;
  /** Why the read models can't be trusted now: during a rebuild they may show an ended replay as running. */
  pausedReason: () => string | undefined;
  /**
   * Waits until no other process replays; resolves with undefined when the signal aborted first. Throws
   * `store_unavailable`.
   */
  acquireLeadership: (signal: AbortSignal) => Promise<Leadership | undefined>;
}

interface RunningReplays {
  health(): ReplaysHealth;
  /** Interrupts the replayed turns; the process that continues begins them again. */
  close(): Promise<void>;
}

interface RunningReplayTask {
  stop: AbortController;
  ended: Promise<void>;
  /** Why its latest attempt failed; undefined during the next one. */
  trouble: string | undefined;
}

/** Runs the replays of all accounts, in this process or after another one. Failures are retried. */
export function startReplays({
  replaying,
  pausedReason,
  acquireLeadership,
}: ReplaysOptions): RunningReplays {
  const { readModels, logger } = replaying.context;
  const { lookMs, runningOfAll } = LIMITS.replays;
  const tasks = new Map<string, RunningReplayTask>();
  let hasOldAttempts = true;

  async function runToEnd(
    replay_id: string,
    task: Omit<RunningReplayTask, 'ended'>,
  ): Promise<void> {
    const { signal } = task.stop;
    const pauses = createReplayBackoff();
    await repeatUntilAborted({
      async run() {
        task.trouble = undefined;
        await runReplay(replaying, replay_id, signal);
        return 'stop';
      },
      onFailure(error) {
        if (signal.aborted) return 'stop';
        task.trouble = publicReason(error);
        logger.error({ err: error, replay_id }, 'a replay failed; retrying');
        return pauses.next();
      },
      signal,
    });
  }

  function start(replay_id: string): void {
    const task = { stop: new AbortController(), trouble: undefined };
    const ended = runToEnd(replay_id, task).finally(() => tasks.delete(replay_id));
    tasks.set(replay_id, Object.assign(task, { ended }));
  }

  const begin = async () => ({
    async poll() {
      const running = new Set(await readModels.listRunningReplays(runningOfAll));
      // Replays may have been cancelled or erased while no process ran them.
      if (hasOldAttempts)
        await replaying.attempts.keepOnly([...running]).catch((error: unknown) => {
          logger.warn({ err: error }, 'the attempts of ended replays could not be removed');
        });
      hasOldAttempts = false;
      for (const [id, { stop }] of tasks) if (!running.has(id)) stop.abort(new ReplayCancelled());
      for (const id of running) if (!tasks.has(id)) start(id);
    },
    async stop() {
      const stopped = [...tasks.values()];
      for (const { stop } of stopped) stop.abort(new ReplayHandedOver());
      await Promise.all(stopped.map(({ ended }) => ended));
    },
  });

  const leader = startLeaderTask({
    name: 'running replays',
    acquireLeadership,
    begin,
    pollMs: lookMs,
    pausedReason,
    logger,
  });
  return {
    health: () => ({
      state: leader.isActive() ? 'active' : 'standing_by',
      running: leader.isActive() ? tasks.size : null,
      reason: leader.reason() ?? [...tasks.values()].find(({ trouble }) => trouble)?.trouble,
    }),
    close: leader.close,
  };
}
