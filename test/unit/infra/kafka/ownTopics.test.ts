import { expect, test } from '@jest/globals';
import type { Kafka } from 'kafkajs';
import { createOwnTopics } from '../../../../infra/kafka/ownTopics.ts';
import { publisherOptions } from '../../../support/servers/kafka/relay.ts';
import { skipPauses } from '../../../support/fakes/jumpingClock.ts';

skipPauses();

const options = publisherOptions('127.0.0.1:9', 'p');
const { agents, sessions } = options.topics;

/** The end offset of the topic of agents, whenever the topics are described; the last one stays. */
type Ends = readonly [number | 'missing', ...Array<number | 'missing'>];

/** What `lost` finds where the record says that the topic of agents has a message at the offset 6. */
function lostAt(ends: Ends): Promise<string | undefined> {
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
  const { lost } = createOwnTopics({ admin: () => admin } as unknown as Kafka, options, {
    readAll: async () =>
      new Map([
        [options.transactionalId, record('{}')],
        [`${options.transactionalId}.topic.${agents}`, record('["6"]')],
      ]),
    commitAndRead: async () => new Map(),
    close: async () => undefined,
  });
  return lost();
}

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
