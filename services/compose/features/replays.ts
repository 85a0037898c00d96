import { join } from 'node:path';
import { openFileReplayAttempts } from '../../../infra/files/replayAttempts.ts';
import { createCompareTurn } from '../../../shared/replays/comparison/comparePair.ts';
import type { ReplayAttempts } from '../../../shared/replays/replayAttempts.ts';
import type { RunContext } from '../../../shared/runs/context.ts';
import { createPermitPool, type PermitPool } from '../../../shared/lib/concurrency/capacity.ts';
import { createFairSemaphore } from '../../../shared/lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  permanentLeadership,
  type Leadership,
} from '../../../shared/lib/concurrency/leaderTask.ts';
import { createAskJudge } from '../../followers/replays/askJudge.ts';
import { createReplayThrottle } from '../../followers/replays/throttle.ts';
import { startReplays } from '../../followers/replays/start.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import type { EmbeddedLocation } from '../logLocation.ts';
import type { Opening } from '../opening.ts';
import { followerPart, type ReadModelsParts } from './followerPart.ts';

/** The permits of requests that start a replay. */
export function createReplayStarts(): PermitPool {
  const { starts: permits, startsOfAccount } = LIMITS.replays;
  const ofAccount = { permits: startsOfAccount, bytes: Infinity };
  return createPermitPool('replay_starts', { permits, bytes: Infinity }, ofAccount);
}

/** How the processes that may run replays take turns, and what one leaves to the next. */
interface SharedReplays {
  acquireLeadership: (signal: AbortSignal) => Promise<Leadership | undefined>;
  attempts: ReplayAttempts;
}

/** Runs replays while the process serves and no other process runs them. */
function replaysPart(
  context: RunContext,
  readModelsParts: ReadModelsParts,
  { acquireLeadership, attempts }: SharedReplays,
): ProcessPart {
  const all = { permits: LIMITS.replays.turns, bytes: Infinity };
  // An account leaves a permit to others: its turns take as long as its models, which may be minutes.
  const share = { ...all, permits: all.permits - 1 };
  const semaphore = createFairSemaphore('replayed_turns', all, share);
  const crashedTurns = createFairSemaphore('crashed_turns', { ...all, permits: 1 });
  const throttle = createReplayThrottle(context.runState.admission);
  const running = { context, semaphore, crashedTurns, throttle, attempts };
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
  { dataFolder }: EmbeddedLocation,
): ProcessPart =>
  replaysPart(context, readModelsParts, {
    acquireLeadership: async () => permanentLeadership(),
    attempts: openFileReplayAttempts(join(dataFolder, 'replay-attempts')),
  });

/** Replays of one of several processes; the one with the lease runs them. */
export async function replicaReplaysPart(
  { logger, opened }: Pick<Opening, 'logger' | 'opened'>,
  context: RunContext,
  readModelsParts: ReadModelsParts,
  databaseUrl: string,
): Promise<ProcessPart> {
  const { acquireReplayLease } = await import('../../../infra/postgres/leases/replayLease.ts');
  const { openPostgresReplayAttempts } = await import('../../../infra/postgres/replayAttempts.ts');
  const attempts = opened.adopt(openPostgresReplayAttempts(databaseUrl), ({ close }) => close());
  const onFailure = (error: unknown, retry_in_ms: number): void =>
    logger.warn({ err: error, retry_in_ms }, 'the database of the replay lease is unavailable');
  return replaysPart(context, readModelsParts, {
    acquireLeadership: (signal) => acquireReplayLease({ databaseUrl, signal, onFailure }),
    attempts,
  });
}
