import { createBackOff } from '../../shared/backOff.ts';
import { isLogAway, isTurnlogError } from '../../shared/errors.ts';
import { inShort } from '../../shared/inShort.ts';
import { LIMITS } from '../../shared/limits.ts';
import { pauseAtMost } from '../../shared/pause.ts';
import type { ReplaysHealth } from '../../shared/queries/health.ts';
import { ReplayEnded, ReplayLeft, type Replaying } from './replaying.ts';
import { runReplay } from './runReplay.ts';

const PAUSES = { firstMs: 200, longestMs: 5_000, spread: [0.5, 1] } as const;

/** That this process is the one that replays. */
export interface ActivePlace {
  /** Aborts when another one may be. */
  lost: AbortSignal;
  close(): Promise<void>;
}

interface Replays {
  replaying: Replaying;
  /** Why the read models can't be trusted now: while they are made anew, a replay that has ended may be there. */
  doubt: () => string | undefined;
  /**
   * Waits until no other process replays; undefined when the signal aborted first. Errors:
   * `store_unavailable`.
   */
  becomeActive: (signal: AbortSignal) => Promise<ActivePlace | undefined>;
}

interface RunningReplays {
  health(): ReplaysHealth;
  /** Interrupts the turns that are replayed: whoever goes on begins them again. */
  close(): Promise<void>;
}

interface Lane {
  stop: AbortController;
  ended: Promise<void>;
}

const reasonOf = (error: unknown): string =>
  isTurnlogError(error) ? error.message : 'It failed; the log says why.';

/** Runs the replays of all accounts, in this process or after another one. It needs nobody's care. */
export function startReplays({ replaying, doubt, becomeActive }: Replays): RunningReplays {
  const { readModels, logger } = replaying.context;
  const closing = new AbortController();
  const pauses = createBackOff(PAUSES);
  const lanes = new Map<string, Lane>();
  let active = false;
  let reason: string | undefined;

  function start(replay_id: string): void {
    const stop = new AbortController();
    const ended = runReplay(replaying, replay_id, stop.signal)
      .then(() => void (reason = undefined))
      .catch((error: unknown) => {
        if (stop.signal.aborted) return;
        reason = reasonOf(error);
        logger.error({ err: error, replay_id }, 'a replay could not be run');
      })
      .finally(() => lanes.delete(replay_id));
    lanes.set(replay_id, { stop, ended });
  }

  async function look(): Promise<void> {
    if (doubt() !== undefined) return;
    try {
      const { runningOfAll } = LIMITS.replays;
      const running = new Set(await readModels.listRunningReplays(runningOfAll));
      for (const [id, { stop }] of lanes) if (!running.has(id)) stop.abort(new ReplayEnded());
      for (const id of running) if (!lanes.has(id)) start(id);
    } catch (error) {
      if (isLogAway(error)) return;
      reason = reasonOf(error);
      logger.error({ err: error }, 'it could not be looked which replays run');
    }
  }

  async function runWhile(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await look();
      await pauseAtMost(LIMITS.replays.lookMs, { signal, ref: false });
    }
    const left = [...lanes.values()];
    for (const { stop } of left) stop.abort(new ReplayLeft());
    await Promise.all(left.map(({ ended }) => ended));
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        const place = await becomeActive(closing.signal);
        if (!place) return;
        active = true;
        pauses.reset();
        try {
          await runWhile(AbortSignal.any([closing.signal, place.lost]));
        } finally {
          await place.close();
        }
      } catch (error) {
        reason = reasonOf(error);
        const retry_in_ms = pauses.next();
        logger.warn({ ...inShort(error), retry_in_ms }, 'running replays failed');
        await pauseAtMost(retry_in_ms, { signal: closing.signal, ref: false });
      } finally {
        active = false;
      }
    }
  }

  const running = run();
  return {
    health: () => ({
      state: active ? 'active' : 'standing_by',
      running: active ? lanes.size : null,
      reason: doubt() ?? reason,
    }),
    async close() {
      closing.abort();
      await running;
    },
  };
}
