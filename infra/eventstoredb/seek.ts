import { sleepUntilAborted } from '../../shared/lib/time/sleep.ts';
import type { Discovery } from './discovery.ts';
import type { Found } from './visit.ts';

/** Between two looks for a node to use. */
const LEAST_PAUSE_MS = 50;

interface Seeking {
  discovery: Discovery;
  closed: AbortSignal;
  /** True while another node is wanted: there is none, or it is silent. */
  isWanted: () => boolean;
  /** True while there is a node in use, silent or not. */
  isInUse: () => boolean;
  use: (found: Found) => void;
  /** Told, where there is no node in use, why none was found. */
  onTrouble: (trouble: string) => void;
}

/** Looks for a node while one is wanted. What it returns ends a pause and looks at once. */
export function createSeek({
  discovery,
  closed,
  isWanted,
  isInUse,
  use,
  onTrouble,
}: Seeking): () => void {
  let seeking: Promise<void> | undefined;
  let nudge = new AbortController();

  const goesOn = (): boolean => !closed.aborted && isWanted();

  async function seekOn(): Promise<void> {
    while (goesOn()) {
      const found = await discovery.look().catch(() => undefined);
      if (!goesOn()) return found?.client.close();
      if (found) return use(found);
      if (!isInUse()) onTrouble(discovery.trouble());
      nudge = new AbortController();
      const signal = AbortSignal.any([closed, nudge.signal]);
      await sleepUntilAborted(Math.max(LEAST_PAUSE_MS, discovery.pauseMs()), {
        signal,
        ref: false,
      });
    }
  }

  return function seek(): void {
    nudge.abort();
    seeking ??= seekOn().finally(() => {
      seeking = undefined;
      discovery.rest();
      // A connection may have been lost between the last look of the loop and its end.
      if (!isInUse() && !closed.aborted) seek();
    });
  };
}
