import type { CompareTurn } from '../../../shared/replays/comparison/turnPair.ts';
import type { RunContext } from '../../../shared/runs/context.ts';
import type { ReplayAttempts } from '../../../shared/replays/replayAttempts.ts';
import type { FairSemaphore } from '../../../shared/lib/concurrency/fairSemaphore.ts';
import type { ReplayThrottle } from './throttle.ts';

/** The context of all replays of a process. */
export interface ReplayRunContext {
  context: RunContext;
  compareTurn: CompareTurn;
  /** Bounds the turns replayed concurrently, fairly among accounts. */
  semaphore: FairSemaphore;
  /**
   * One permit for the turns in which a process died: the next death then counts for one of them.
   * Accounts take turns.
   */
  crashedTurns: FairSemaphore;
  attempts: ReplayAttempts;
  throttle: ReplayThrottle;
}

/** The replay was cancelled or erased. */
export class ReplayCancelled extends Error {}
/** The process stops, or another process continues the replay. */
export class ReplayHandedOver extends Error {}
