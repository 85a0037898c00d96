import { createCompareTurn } from '../../../shared/replays/comparison/comparePair.ts';
import type { RunContext } from '../../../shared/runs/context.ts';
import { createFairSemaphore } from '../../../shared/lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { Leadership } from '../../../shared/lib/concurrency/leaderTask.ts';
import { createAskJudge } from '../../followers/replays/askJudge.ts';
import { createReplayThrottle } from '../../followers/replays/throttle.ts';
import { startReplays } from '../../followers/replays/start.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import type { Opening } from '../opening.ts';

type AcquireLeadership = (signal: AbortSignal) => Promise<Leadership | undefined>;

/** Parts that know whether the read models can be trusted; they are prepared before. */
type Shown = readonly Pick<ProcessPart, 'doubt'>[];

/** The part that runs replays, while the process serves and no other one runs them. */
function replaysPart(
  context: RunContext,
  shown: Shown,
  acquireLeadership: AcquireLeadership,
): ProcessPart {
  const { turns: permits } = LIMITS.replays;
  const all = { permits, bytes: Infinity };
  // Turns are short: the next in the queue waits little.
  const semaphore = createFairSemaphore(all, all);
  const throttle = createReplayThrottle(context.runState.admission);
  const running = { context, semaphore, throttle };
  const { catalogue } = context;
  const compareTurn = createCompareTurn({ catalogue, askJudge: createAskJudge(running) });
  const replaying = { ...running, compareTurn };
  let starting: string | undefined = 'The read models are being brought up to date.';
  let started: ReturnType<typeof startReplays> | undefined;
  const pausedReason = (): string | undefined =>
    starting ?? shown.map((part) => part.doubt?.()).find((told) => told !== undefined);
  return {
    prepare: async () => void (starting = undefined),
    health: async () => (started ? { replays: started.health() } : {}),
    upkeep() {
      started = startReplays({ replaying, pausedReason, acquireLeadership });
      const { close } = started;
      return { [Symbol.asyncDispose]: close };
    },
  };
}

/** Replays of the one process with that data folder. */
export const embeddedReplaysPart = (context: RunContext, shown: Shown): ProcessPart =>
  replaysPart(context, shown, async () => ({
    lost: new AbortController().signal,
    close: async () => undefined,
  }));

/** The same of one process of several. */
export const replicaReplaysPart = (
  { logger }: Pick<Opening, 'logger'>,
  context: RunContext,
  shown: Shown,
  databaseUrl: string,
): ProcessPart =>
  replaysPart(context, shown, async (signal) => {
    const { acquireReplayLease } = await import('../../../infra/postgres/leases/replayLease.ts');
    return acquireReplayLease({
      databaseUrl,
      signal,
      onFailure: (error, retry_in_ms) =>
        logger.warn({ err: error, retry_in_ms }, 'The database of replays is away'),
    });
  });
