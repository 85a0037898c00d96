import { expect } from '@jest/globals';
import { toPublicEvents } from '../../../shared/publicEvents/toPublicEvents.ts';
import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import type { Publisher } from '../../../shared/publicEvents/publisher.ts';
import type { PublicEvent } from '../../../shared/publicEvents/publicEvent.ts';
import { relayTo } from '../kafka/relay.ts';
import { eventually } from '../processes/operator.ts';
import type { Follower } from './followers.ts';

/** Topics in memory, of one relay at a time. */
function memoryTopics() {
  const published: PublicEvent[] = [];
  let checkpoint: Checkpoint | undefined;
  const publisher: Publisher = {
    takeOver: async () => ({
      checkpoint,
      async publish(events, reached) {
        published.push(...events);
        checkpoint = reached;
      },
      beat: async () => undefined,
      visitPublished: async (visit) => published.forEach(({ id }) => visit(id)),
      parked: () => ({ count: 0, keys: [] }),
      close: async () => undefined,
    }),
    checkpoint: async () => checkpoint,
    lost: async () => undefined,
    activity: async () => '',
    isEmpty: async () => published.length === 0,
    close: async () => undefined,
  };
  return { published, publisher };
}

const idsByKey = (events: readonly PublicEvent[]): Map<string, string[]> => {
  const ids = new Map<string, string[]>();
  for (const { key, id } of events) ids.set(key, [...(ids.get(key) ?? []), id]);
  return ids;
};

/** A relay to topics in memory. */
export function relayFollower(): Follower & { published: readonly PublicEvent[] } {
  const { published, publisher } = memoryTopics();
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
