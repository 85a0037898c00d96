import { pauseFor } from '../../shared/pause.ts';
import type { Relay } from './relay.ts';

/** Resolves when whoever took over has been silent; two that stand by wait differently long. */
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
