import type { Actor } from '../../../../shared/commandHandling/context.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { isStillValid } from '../../../../shared/accounts/authenticate.ts';
import type { RouteContext } from '../../context.ts';

/** Whether the client's key is still valid. */
export type KeyCheck = () => boolean | Promise<boolean>;

/**
 * Checks at intervals whether the client's key, and its chat token, are still valid. `checkedAt` is
 * the time of the last check, by `performance.now()`; by default the first answer is checked, because
 * a handler may have waited before it.
 */
export function createKeyCheck(
  { cachedRows, clock }: Pick<RouteContext, 'cachedRows' | 'clock'>,
  actor: Pick<Actor, 'key_id' | 'chat'>,
  checkedAt = -Infinity,
): KeyCheck {
  let lastCheckedAt = checkedAt;
  return () => {
    if (actor.chat && actor.chat.expires_at <= clock.now()) return false;
    const now = performance.now();
    if (now - lastCheckedAt < LIMITS.feed.keyCheckMs) return true;
    lastCheckedAt = now;
    return isStillValid(cachedRows, actor, clock.now());
  };
}

/**
 * Passes events on until the client's key is no longer valid. It is no generator, which would keep the
 * last event in memory while it waits for the next one.
 */
export function untilRevoked<Event>(
  events: AsyncIterable<Event, void>,
  isAllowed: KeyCheck,
): AsyncIterator<Event, void> {
  const iterator = events[Symbol.asyncIterator]();
  const end = async (): Promise<IteratorReturnResult<void>> => {
    await iterator.return?.();
    return { done: true, value: undefined };
  };
  return {
    async next() {
      const result = await iterator.next();
      // Checked without a promise most of the time: each of thousands of followers checks it for each event.
      const isValid = result.done === true || isAllowed();
      return isValid === true || (await isValid) ? result : end();
    },
    return: end,
  };
}
