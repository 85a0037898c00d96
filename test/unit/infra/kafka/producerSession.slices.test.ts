import { expect, test } from '@jest/globals';
import type { Kafka } from 'kafkajs';
import { startProducerSession } from '../../../../infra/kafka/producerSession.ts';
import type { TopicSend } from '../../../../infra/kafka/batching.ts';
import { toPublicEvents } from '../../../../shared/publicEvents/toPublicEvents.ts';
import { agentCreated } from '../../../support/builders/events.ts';
import { reached, recordHistory } from '../../../support/builders/history.ts';
import { turnsDuring } from '../../../support/fakes/loopTurns.ts';
import { publisherOptions } from '../../../support/servers/kafka/relay.ts';

test('a large batch leaves the event loop to others, and is one commit in order', async () => {
  const { record, lastPosition } = recordHistory();
  const events = toPublicEvents(
    Array.from({ length: 1_000 }, (_, index) =>
      record({ stream: `agent-agent_${index}` }, agentCreated()),
    ),
  );
  const options = { ...publisherOptions('127.0.0.1:9', 'p'), deadLetterTopic: undefined };
  const topic = {
    ends: [0n],
    maxMessageBytes: 1_000_000,
    retentionMs: -1,
    retentionBytes: -1,
    cleanupPolicy: 'delete',
  };
  const commits: TopicSend[][] = [];
  const session = await startProducerSession({
    kafka: {} as Kafka,
    options,
    producer: {
      commit: async (first, rest = []) => void commits.push([first, ...rest]),
      close: async () => undefined,
    },
    notes: {
      readAll: async () => new Map(),
      async commitAndRead({ key, value }, commit) {
        await commit();
        return new Map([[key, { value, offset: '0' }]]);
      },
      close: async () => undefined,
    },
    topics: new Map(Object.values(options.topics).map((name) => [name, topic])),
    refreshTopics: async (described) => described,
    requireTopics: async () => undefined,
  });
  const { checkpoint } = reached(lastPosition());
  const turns = await turnsDuring(() => session.publish(events, checkpoint!));
  expect(turns).toBeGreaterThan(150);
  const [takeOver, publication, ...others] = commits;
  expect([takeOver?.length, others.length]).toEqual([1, 0]);
  const sent = publication!.slice(1).flatMap(({ messages }) => messages);
  expect(sent.map(({ headers }) => headers?.['ce_id'])).toEqual(events.map(({ id }) => id));
});
