import { pauseFor } from '../../shared/pause.ts';
import type { Relay } from './relay.ts';

/** Resolves when whoever has taken over has been silent for some time. Two that stand by wait for different times. */
export async function standBy({
  publisher,
  takeOverMs,
  signal,
}: Pick<Relay, 'publisher' | 'takeOverMs' | 'signal'>): Promise<void> {
  for (let seen = await publisher.activity(); ;) {
    await pauseFor(takeOverMs * (1 + Math.random() / 2), signal);
    const now = await publisher.activity();
    if (now === seen) return;
    seen = now;
  }
}
