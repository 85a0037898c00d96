import type { Actor } from '../../../../shared/commandHandling/context.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { isStillValid } from '../../../../shared/accounts/authenticate.ts';
import type { RouteContext } from '../../context.ts';

/** Checks at intervals whether the client's key is still valid. */
export function createKeyCheck(
  { cachedRows, clock }: Pick<RouteContext, 'cachedRows' | 'clock'>,
  { key_id }: Pick<Actor, 'key_id'>,
): () => Promise<boolean> {
  let checkedAt = performance.now();
  return async () => {
    const now = performance.now();
    if (now - checkedAt < LIMITS.feed.keyCheckMs) return true;
    checkedAt = now;
    return isStillValid(cachedRows, key_id, clock.now());
  };
}

/** Passes events on until the client's key is no longer valid. */
export async function* untilRevoked<Event>(
  events: AsyncIterable<Event>,
  isAllowed: () => Promise<boolean>,
): AsyncGenerator<Event> {
  for await (const event of events) {
    if (!(await isAllowed())) return;
    yield event;
  }
}
