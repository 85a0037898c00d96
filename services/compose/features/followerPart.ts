import type { Health } from '../../../shared/health/health.ts';
import { runTask } from '../../../shared/lib/concurrency/eventLoopWatchdog.ts';
import { firstReason } from '../../process/health/health.ts';
import type { ProcessPart } from '../../process/processParts.ts';

/** Parts that report whether the read models can be trusted; they are prepared before a follower. */
export type ReadModelsParts = readonly Pick<ProcessPart, 'distrustReason'>[];

interface Follower {
  health(): Partial<Health>;
  close(): Promise<void>;
}

/**
 * A part that runs a follower while the process serves. The follower pauses until the read models
 * are up to date, and while they can't be trusted.
 */
export function followerPart(
  name: 'webhooks' | 'replays',
  readModelsParts: ReadModelsParts,
  start: (pausedReason: () => string | undefined) => Follower,
): ProcessPart {
  let startingReason: string | undefined = 'The read models are being brought up to date.';
  let follower: Follower | undefined;
  return {
    prepare: async () => void (startingReason = undefined),
    health: async () => follower?.health() ?? {},
    upkeep() {
      follower = runTask(name, () =>
        start(() => startingReason ?? firstReason(readModelsParts, 'distrustReason')),
      );
      const { close } = follower;
      return { [Symbol.asyncDispose]: close };
    },
  };
}
