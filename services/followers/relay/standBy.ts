import { sleep } from '../../../shared/lib/time/sleep.ts';
import type { Relay } from './relay.ts';

/** Looks in the time that the active relay may be silent. */
const LOOKS = 10;
/** Two that stand by wait differently long, by up to this part. */
const SPREAD = 0.2;

/**
 * Resolves when whoever took over has not got on for the take-over time: neither published nor been
 * alive with nothing to publish. Taking over is not getting on.
 */
export async function standBy({
  publisher,
  takeOverMs,
  signal,
}: Pick<Relay, 'publisher' | 'takeOverMs' | 'signal'>): Promise<void> {
  const patienceMs = takeOverMs * (1 + Math.random() * SPREAD);
  let seen = await publisher.activity();
  for (let since = performance.now(); performance.now() - since < patienceMs;) {
    await sleep(takeOverMs / LOOKS, signal);
    const now = await publisher.activity();
    if (now !== seen) since = performance.now();
    seen = now;
  }
}
