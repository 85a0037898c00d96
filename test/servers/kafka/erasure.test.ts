import { expect, jest, test } from '@jest/globals';
import { openKafkaPublisher } from '../../../infra/kafka/publisher.ts';
import { republishLog } from '../../../services/followers/relay/republishLog.ts';
import {
  agentCreated,
  agentErased,
  agentUpdated,
  sessionErased,
  sessionStarted,
} from '../../support/builders/events.ts';
import { collectFrom, type Received } from '../../support/servers/kafka/kafkaConsumer.ts';
import { setUpRelayTests } from '../../support/servers/kafka/relayFixture.ts';
import { administer, untilTopicsExist } from '../../support/servers/kafka/kafkaTopics.ts';
import { publisherOptions, relayTo, topicsOf } from '../../support/servers/kafka/relay.ts';
import { appendMore, appendTo } from '../../support/stores/projections/projector.ts';

jest.setTimeout(120_000);

const { fixture, brokers, onKafka } = await setUpRelayTests();

function start(changes: Partial<ReturnType<typeof publisherOptions>> = {}): void {
  const publisher = openKafkaPublisher({
    ...publisherOptions(brokers, fixture.prefix),
    ...changes,
  });
  fixture.closing.push(relayTo(publisher, fixture.log).close);
}

const create = (topic: string, policy: string): Promise<boolean> =>
  administer(brokers, (admin) =>
    admin.createTopics({
      topics: [{ topic, configEntries: [{ name: 'cleanup.policy', value: policy }] }],
      waitForLeaders: true,
    }),
  );

/** Messages of the topics until one of `last` has come, by key: their types, null for a tombstone. */
async function read(topics: string[], last: string): Promise<Record<string, (string | null)[]>> {
  await untilTopicsExist(brokers, topics);
  const consumer = await collectFrom(brokers, topics);
  fixture.closing.push(consumer.close);
  const received = await consumer.until((all) => all.some(({ key }) => key === last));
  const byKey = Map.groupBy(received, ({ key }) => key);
  const typeOf = ({ value, headers }: Received) =>
    value === null ? null : headers['ce_type']!.replace('turnlog.', '');
  return Object.fromEntries([...byKey].map(([key, all]) => [key, all.map(typeOf)]));
}

const STARTED = 'session.started.v1';
const ERASED = 'session.erased.v1';

/** Two sessions, the first of them erased, and one more that is the last of the log. */
async function appendErased(): Promise<void> {
  await appendTo(fixture.log, 'session-session_1', [sessionStarted()]);
  await appendTo(fixture.log, 'session-session_2', [sessionStarted()]);
  await appendMore(fixture.log, 'session-session_1', [sessionErased()]);
  await appendTo(fixture.log, 'session-session_9', [sessionStarted()]);
}

onKafka('an erased session', () => {
  test.each(['compact', 'compact,delete'])(
    'is followed by a tombstone in a topic with cleanup.policy=%s',
    async (policy) => {
      const { sessions } = topicsOf(fixture.prefix);
      await create(sessions, policy);
      await appendErased();
      start({ partitions: 1 });
      expect(await read([sessions], 'session_9')).toEqual({
        session_1: [STARTED, ERASED, null],
        session_2: [STARTED],
        session_9: [STARTED],
      });
    },
  );

  test('has no tombstone in a topic that is not compacted, whose consumers would wonder', async () => {
    await appendErased();
    start({ partitions: 1 });
    const types = await read([topicsOf(fixture.prefix).sessions], 'session_9');
    expect(types['session_1']).toEqual([STARTED, ERASED]);
  });

  test('is told though its key is parked, with a tombstone for what was published before', async () => {
    const { agents } = topicsOf(fixture.prefix);
    await administer(brokers, (admin) =>
      admin.createTopics({
        topics: [
          {
            topic: agents,
            configEntries: [
              { name: 'cleanup.policy', value: 'compact' },
              { name: 'max.message.bytes', value: '4000' },
            ],
          },
        ],
        waitForLeaders: true,
      }),
    );
    await appendTo(fixture.log, 'agent-agent_1', [
      agentCreated(),
      agentUpdated({ instruction: 'x'.repeat(5_000) }),
      agentErased(),
    ]);
    await appendTo(fixture.log, 'agent-agent_9', [agentCreated()]);
    start({ partitions: 1 });
    const types = await read([agents], 'agent_9');
    expect(types['agent_1']).toEqual(['agent.created.v1', 'agent.erased.v1', null]);
  });

  test('is replayed with its tombstone', async () => {
    const topic = `${fixture.prefix}.again`;
    await create(topic, 'compact');
    await appendErased();
    const publisher = openKafkaPublisher({
      ...publisherOptions(brokers, fixture.prefix),
      topics: { agents: topic, sessions: topic },
      deadLetterTopic: undefined,
    });
    fixture.closing.push(() => publisher.close());
    const { signal } = new AbortController();
    const what = { after: undefined, only: undefined, onProgress: () => undefined };
    expect(await republishLog({ log: fixture.log, publisher, signal, ...what })).toBe(true);
    const types = await read([topic], 'session_9');
    expect(types['session_1']).toEqual([STARTED, ERASED, null]);
  });
});
