import { LIMITS } from '../../../shared/limits.ts';
import { publicReason } from '../../../shared/lib/errors/errorSummary.ts';
import { repeatUntilAborted } from '../../../shared/lib/concurrency/repeatUntilAborted.ts';
import { startLeaderTask, type Leadership } from '../../../shared/lib/concurrency/leaderTask.ts';
import type { ReplaysHealth } from '../../../shared/health/health.ts';
import { createReplayBackoff } from './transientFailures.ts';
import { ReplayCancelled, ReplayHandedOver, type ReplayRunContext } from './replayContext.ts';
import { runReplay } from './runReplay.ts';

interface Replays {
  replaying: ReplayRunContext;
  /** Why the read models can't be trusted now: while they are made anew, a replay that has ended may be there. */
  pausedReason: () => string | undefined;
  /**
   * Waits until no other process replays; undefined when the signal aborted first. Errors:
   * `store_unavailable`.
   */
  acquireLeadership: (signal: AbortSignal) => Promise<Leadership | undefined>;
}

interface RunningReplays {
  health(): ReplaysHealth;
  /** Interrupts the turns that are replayed: whoever goes on begins them again. */
  close(): Promise<void>;
}

interface Lane {
  stop: AbortController;
  ended: Promise<void>;
  /** Why its last try failed, until the next one. */
  trouble: string | undefined;
}

/** Runs the replays of all accounts, in this process or after another one. It needs nobody's care. */
export function startReplays({
  replaying,
  pausedReason,
  acquireLeadership,
}: Replays): RunningReplays {
  const { readModels, logger } = replaying.context;
  const { lookMs, runningOfAll } = LIMITS.replays;
  const lanes = new Map<string, Lane>();

  async function runToItsEnd(replay_id: string, lane: Omit<Lane, 'ended'>): Promise<void> {
    const { signal } = lane.stop;
    const pauses = createReplayBackoff();
    await repeatUntilAborted({
      async run() {
        lane.trouble = undefined;
        await runReplay(replaying, replay_id, signal);
        return 'stop';
      },
      onFailure(error) {
        if (signal.aborted) return 'stop';
        lane.trouble = publicReason(error);
        logger.error({ err: error, replay_id }, 'a replay could not be run');
        return pauses.next();
      },
      signal,
    });
  }

  function start(replay_id: string): void {
    const lane = { stop: new AbortController(), trouble: undefined };
    const ended = runToItsEnd(replay_id, lane).finally(() => lanes.delete(replay_id));
    lanes.set(replay_id, Object.assign(lane, { ended }));
  }

  const begin = async () => ({
    async poll() {
      const running = new Set(await readModels.listRunningReplays(runningOfAll));
      for (const [id, { stop }] of lanes) if (!running.has(id)) stop.abort(new ReplayCancelled());
      for (const id of running) if (!lanes.has(id)) start(id);
    },
    async stop() {
      const left = [...lanes.values()];
      for (const { stop } of left) stop.abort(new ReplayHandedOver());
      await Promise.all(left.map(({ ended }) => ended));
    },
  });

  const work = startLeaderTask({
    name: 'running replays',
    acquireLeadership,
    begin,
    pollMs: lookMs,
    pausedReason,
    logger,
  });
  return {
    health: () => ({
      state: work.isActive() ? 'active' : 'standing_by',
      running: work.isActive() ? lanes.size : null,
      reason: work.reason() ?? [...lanes.values()].find(({ trouble }) => trouble)?.trouble,
    }),
    close: work.close,
  };
}
