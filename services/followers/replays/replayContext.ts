import type { CompareTurn } from '../../../shared/replays/comparison/turnPair.ts';
import type { RunContext } from '../../../shared/runs/context.ts';
import type { FairSemaphore } from '../../../shared/lib/concurrency/fairSemaphore.ts';
import type { ReplayThrottle } from './throttle.ts';

/** What all replays of a process are run with. */
export interface ReplayRunContext {
  context: RunContext;
  compareTurn: CompareTurn;
  /** Turns that are replayed at a time; the accounts take turns. */
  semaphore: FairSemaphore;
  throttle: ReplayThrottle;
}

/** The account's client has cancelled the replay, or it was erased. */
export class ReplayCancelled extends Error {}
/** The process stops, or another one goes on. */
export class ReplayHandedOver extends Error {}
