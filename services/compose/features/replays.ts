import { createCompareTurn } from '../../../shared/replays/comparison/comparePair.ts';
import type { RunContext } from '../../../shared/runs/context.ts';
import { createPermitPool, type PermitPool } from '../../../shared/lib/concurrency/capacity.ts';
import { createFairSemaphore } from '../../../shared/lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { Leadership } from '../../../shared/lib/concurrency/leaderTask.ts';
import { createAskJudge } from '../../followers/replays/askJudge.ts';
import { createReplayThrottle } from '../../followers/replays/throttle.ts';
import { startReplays } from '../../followers/replays/start.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import type { Opening } from '../opening.ts';
import { followerPart, type ReadModelsParts } from './followerPart.ts';

/** The permits of requests that start a replay. */
export function createReplayStarts(): PermitPool {
  const { starts: permits, startsOfAccount } = LIMITS.replays;
  const ofAccount = { permits: startsOfAccount, bytes: Infinity };
  return createPermitPool('replay_starts', { permits, bytes: Infinity }, ofAccount);
}

type AcquireLeadership = (signal: AbortSignal) => Promise<Leadership | undefined>;

/** Runs replays while the process serves and no other process runs them. */
function replaysPart(
  context: RunContext,
  readModelsParts: ReadModelsParts,
  acquireLeadership: AcquireLeadership,
): ProcessPart {
  const all = { permits: LIMITS.replays.turns, bytes: Infinity };
  // An account leaves a permit to others: its turns take as long as its models, which may be minutes.
  const share = { ...all, permits: all.permits - 1 };
  const semaphore = createFairSemaphore('replayed_turns', all, share);
  const throttle = createReplayThrottle(context.runState.admission);
  const running = { context, semaphore, throttle };
  const { catalogue } = context;
  const compareTurn = createCompareTurn({ catalogue, askJudge: createAskJudge(running) });
  const replaying = { ...running, compareTurn };
  return followerPart('replays', readModelsParts, (pausedReason) => {
    const replays = startReplays({ replaying, pausedReason, acquireLeadership });
    return { health: () => ({ replays: replays.health() }), close: replays.close };
  });
}

/** Replays of an embedded service, the only process with its data folder. */
export const embeddedReplaysPart = (
  context: RunContext,
  readModelsParts: ReadModelsParts,
): ProcessPart =>
  replaysPart(context, readModelsParts, async () => ({
    lost: new AbortController().signal,
    close: async () => undefined,
  }));

/** Replays of one of several processes; the one with the lease runs them. */
export const replicaReplaysPart = (
  { logger }: Pick<Opening, 'logger'>,
  context: RunContext,
  readModelsParts: ReadModelsParts,
  databaseUrl: string,
): ProcessPart =>
  replaysPart(context, readModelsParts, async (signal) => {
    const { acquireReplayLease } = await import('../../../infra/postgres/leases/replayLease.ts');
    return acquireReplayLease({
      databaseUrl,
      signal,
      onFailure: (error, retry_in_ms) =>
        logger.warn({ err: error, retry_in_ms }, 'the database of the replay lease is unavailable'),
    });
  });
