import { expect, test } from '@jest/globals';
import type { Kafka } from 'kafkajs';
import { createOwnTopics } from '../../../../infra/kafka/ownTopics.ts';
import { publisherOptions } from '../../../support/servers/kafka/relay.ts';
import { skipPauses } from '../../../support/fakes/jumpingClock.ts';

skipPauses();

const options = { ...publisherOptions('127.0.0.1:9', 'p'), deadLetterTopic: undefined };
const { agents, sessions } = options.topics;

/** The end offset of the topic of agents, whenever the topics are described; the last one stays. */
type Ends = readonly [number | 'missing', ...Array<number | 'missing'>];

/** Topics whose records say that the topic of agents has a message at the offset 6. */
function topicsAt(ends: Ends) {
  let looks = -1;
  const end = (): number | 'missing' => ends[Math.min(looks, ends.length - 1)]!;
  const admin = {
    connect: async () => undefined,
    disconnect: async () => undefined,
    async listTopics() {
      looks += 1;
      return [options.checkpointTopic, sessions, ...(end() === 'missing' ? [] : [agents])];
    },
    async describeConfigs({ resources }: { resources: Array<{ name: string }> }) {
      const configValue = resources[0]?.name === options.checkpointTopic ? 'compact' : 'delete';
      return { resources: [{ configEntries: [{ configName: 'cleanup.policy', configValue }] }] };
    },
    fetchTopicOffsets: async (topic: string) => [
      { partition: 0, high: topic === agents ? String(end()) : '0' },
    ],
  };
  const record = (value: string) => ({ value, offset: '1' });
  const records = new Map([
    [options.transactionalId, record('{}')],
    [`${options.transactionalId}.topic.${agents}`, record('["6"]')],
  ]);
  const topics = createOwnTopics({ admin: () => admin } as unknown as Kafka, options, {
    readAll: async () => records,
    commitAndRead: async () => records,
    close: async () => undefined,
  });
  return { topics, records };
}

/** What `lost` finds. */
const lostAt = (ends: Ends): Promise<string | undefined> => topicsAt(ends).topics.lost();

test('messages that are missing are reported', async () => {
  expect(await lostAt([7])).toBeUndefined();
  expect(await lostAt([6])).toContain(`${agents} lacks events`);
  expect(await lostAt(['missing'])).toContain(`${agents}, to which events were published, is gone`);
});

test.each<[string, Ends]>([
  ['were published', [6, 7]],
  ['were published, and are visible only later,', [6, 6, 7]],
  ['were published, together with their topic,', ['missing', 7]],
])('messages that %s while the topics and records were read are not missing', async (_, ends) => {
  expect(await lostAt(ends)).toBeUndefined();
});

test.each<[string, Ends]>([
  ['are whole', [7]],
  ['were described before the last publication of the predecessor', [6, 7]],
  ['show the last publication of the predecessor only later', [6, 6, 6, 7]],
  ['have lost their end', [5]],
])('the topics after a take-over are the latest, where they %s', async (_, ends) => {
  const { topics, records } = topicsAt(ends);
  const described = await topics.create();
  expect((await topics.refresh(described, records)).get(agents)?.ends).toEqual([
    BigInt(ends.at(-1)!),
  ]);
});

test('a topic that is deleted during a take-over makes the publisher unavailable', async () => {
  const { topics, records } = topicsAt([6, 'missing']);
  const described = await topics.create();
  await expect(topics.refresh(described, records)).rejects.toMatchObject({
    code: 'publisher_unavailable',
    message: expect.stringContaining(`${agents} is gone`),
  });
});
