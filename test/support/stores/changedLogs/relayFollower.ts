import { expect } from '@jest/globals';
import { toPublicEvents } from '../../../../shared/publicEvents/toPublicEvents.ts';
import type { PublicEvent } from '../../../../shared/publicEvents/publicEvent.ts';
import { createMemoryTopics } from '../../fakes/memoryTopics.ts';
import { relayTo } from '../../servers/kafka/relay.ts';
import { eventually } from '../../processes/operator.ts';
import type { Follower } from './followers.ts';

const idsByKey = (events: readonly PublicEvent[]): Map<string, string[]> => {
  const ids = new Map<string, string[]>();
  for (const { key, id } of events) ids.set(key, [...(ids.get(key) ?? []), id]);
  return ids;
};

/** A relay to topics in memory. */
export function relayFollower(): Follower & { published: readonly PublicEvent[] } {
  const { state, createPublisher } = createMemoryTopics();
  const { published } = state;
  const { publisher } = createPublisher();
  return {
    name: 'the relay',
    published,
    checkpoint: publisher.checkpoint,
    async follow(log) {
      const events = await log.head();
      const relay = relayTo(publisher, log, { takeOverMs: 10_000 });
      try {
        const found = await eventually(
          relay.health,
          (health) =>
            health.reason?.includes('The log has changed') === true ||
            (health.state === 'relaying' &&
              health.lag_ms === 0 &&
              (health.position ?? '') >= (events ?? '')),
        );
        return found.reason;
      } finally {
        await relay.close();
      }
    },
    contents: async () => [published.map(({ id }) => id), await publisher.checkpoint()],
    async expectRight(events) {
      const due = toPublicEvents(events);
      const ids = published.map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      const there = new Set(due.map(({ id }) => id));
      expect(idsByKey(published.filter(({ id }) => there.has(id)))).toEqual(idsByKey(due));
    },
  };
}
