import { resumeTask } from './eventLoopWatchdog.ts';
import { sleepUntilAborted } from '../time/sleep.ts';

/** How long to pause, in milliseconds; `stop` ends the repetition. */
type NextRun = number | 'stop';

interface Repetition {
  run: () => Promise<NextRun>;
  /** Handles what a run failed with. */
  onFailure: (error: unknown) => NextRun | Promise<NextRun>;
  signal: AbortSignal;
  /** False lets the process end during a pause. */
  ref?: boolean;
}

/** Runs work repeatedly, with pauses, until the signal aborts or a run returns `stop`. */
export async function repeatUntilAborted({
  run,
  onFailure,
  signal,
  ref = true,
}: Repetition): Promise<void> {
  while (!signal.aborted) {
    resumeTask();
    const next = await run().catch(onFailure);
    if (next === 'stop') return;
    if (next > 0) await sleepUntilAborted(next, { signal, ref });
  }
}
