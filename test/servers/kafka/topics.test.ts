import { setTimeout as sleep } from 'node:timers/promises';
import { expect, jest, test } from '@jest/globals';
import type { ITopicConfig } from 'kafkajs';
import { openKafkaPublisher } from '../../../infra/kafka/publisher.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { agentCreated, agentUpdated } from '../../support/builders/events.ts';
import { collectFrom, type Received } from '../../support/servers/kafka/kafkaConsumer.ts';
import { setUpRelayTests } from '../../support/servers/kafka/relayFixture.ts';
import { administer, untilTopicsExist } from '../../support/servers/kafka/kafkaTopics.ts';
import {
  publisherOptions,
  relayTo,
  topicsOf,
  type TestRelay,
} from '../../support/servers/kafka/relay.ts';
import {
  agentId,
  appendAgents,
  appendMore,
  appendTo,
} from '../../support/stores/projections/projector.ts';

jest.setTimeout(120_000);

const { fixture, brokers, onKafka } = await setUpRelayTests();

interface Start {
  startAfter?: Position;
  startIsStated?: boolean;
  options?: Partial<ReturnType<typeof publisherOptions>>;
}

function start({ options, ...changes }: Start = {}): TestRelay {
  const publisher = openKafkaPublisher({
    ...publisherOptions(brokers, fixture.prefix),
    ...options,
  });
  const relay = relayTo(publisher, fixture.log, changes);
  fixture.closing.push(relay.close);
  return relay;
}

type Health = Awaited<ReturnType<TestRelay['health']>>;

async function untilHealth(relay: TestRelay, holds: (health: Health) => boolean): Promise<Health> {
  for (;;) {
    const health = await relay.health();
    if (holds(health)) return health;
    await sleep(20);
  }
}

const untilRefused = (relay: TestRelay, named: string): Promise<Health> =>
  untilHealth(relay, ({ state, reason }) => state === 'retrying' && !!reason?.includes(named));

const create = (...topics: ITopicConfig[]): Promise<boolean> =>
  administer(brokers, (admin) => admin.createTopics({ topics, waitForLeaders: true }));

async function remove(topic: string): Promise<void> {
  await administer(brokers, async (admin) => {
    await admin.deleteTopics({ topics: [topic] });
    while ((await admin.listTopics()).includes(topic)) await sleep(50);
  });
}

async function read(topics: string[], wanted: number): Promise<Received[]> {
  await untilTopicsExist(brokers, topics);
  const consumer = await collectFrom(brokers, topics);
  fixture.closing.push(consumer.close);
  return consumer.until((received) => received.length >= wanted);
}

const configOf = async (topic: string, name: string): Promise<string | undefined> => {
  const { resources } = await administer(brokers, (admin) =>
    admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: 2, name: topic, configNames: [name] }],
    }),
  );
  return resources[0]?.configEntries[0]?.configValue;
};

onKafka('the checkpoint topic', () => {
  test.each([
    [{ numPartitions: 3 }, '3 partitions'],
    [
      { numPartitions: 1, configEntries: [{ name: 'cleanup.policy', value: 'delete' }] },
      'cleanup.policy=delete',
    ],
  ])('is refused where it can not keep checkpoints: %j', async (config, found) => {
    const topic = `${fixture.prefix}.checkpoints`;
    const policy = { configEntries: [{ name: 'cleanup.policy', value: 'compact' }] };
    await create({ topic, ...policy, ...config });
    await appendAgents(fixture.log, 0, 1);
    const { reason } = await untilRefused(start(), found);
    expect(reason).toContain(topic);
    expect(reason).toContain('KAFKA_CHECKPOINT_TOPIC');
    expect(await administer(brokers, (admin) => admin.listTopics())).not.toContain(
      topicsOf(fixture.prefix).agents,
    );
  });

  test('that was deleted is not a reason to publish everything again, unless somebody says where to begin', async () => {
    await appendAgents(fixture.log, 0, 2);
    const first = start();
    const before = await read([topicsOf(fixture.prefix).agents], 2);
    await first.close();
    await remove(`${fixture.prefix}.checkpoints`);
    const last = await appendAgents(fixture.log, 2, 3);
    const second = start();
    const { reason } = await untilRefused(second, `${fixture.prefix}.checkpoints does not exist`);
    expect(reason).toContain('KAFKA_START_AFTER');
    await second.close();
    // Partitions are read in any order.
    const positions = before.map(({ headers }) => headers['ce_position'] as Position);
    const third = start({ startAfter: positions.toSorted().at(-1)! });
    await untilHealth(third, ({ position }) => position === last);
    const after = await read([topicsOf(fixture.prefix).agents], 3);
    expect(new Set(after.map(({ headers }) => headers['ce_id'])).size).toBe(3);
    expect(after).toHaveLength(3);
  });
});

onKafka('a public topic', () => {
  test('that is deleted is missed at once, and an empty one in its place is not taken for it', async () => {
    const { agents } = topicsOf(fixture.prefix);
    const position = await appendAgents(fixture.log, 0, 2);
    const relay = start();
    await read([agents], 2);
    await untilHealth(relay, ({ state }) => state === 'relaying');
    await remove(agents);
    const { reason } = await untilRefused(
      relay,
      `${agents}, to which events were published, is gone`,
    );
    expect(reason).toContain('relay replay');
    await relay.close();
    await create({ topic: agents, numPartitions: 3 });
    const again = start();
    expect((await untilRefused(again, `${agents} lacks events`)).reason).toContain(
      `KAFKA_START_AFTER=${position}`,
    );
    await again.close();
    const last = await appendAgents(fixture.log, 2, 3);
    const accepted = start({ startAfter: position });
    await untilHealth(accepted, ({ position: at }) => at === last);
    const received = await read([agents], 1);
    expect(received.map(({ key }) => key)).toEqual([agentId(2)]);
  });

  test('that gets partitions while it is in use keeps its keys where they are', async () => {
    const { agents } = topicsOf(fixture.prefix);
    await appendAgents(fixture.log, 0, 20);
    const first = start();
    await read([agents], 20);
    await first.close();
    await administer(brokers, (admin) =>
      admin.createPartitions({ topicPartitions: [{ topic: agents, count: 8 }] }),
    );
    for (let index = 0; index < 20; index += 1)
      await appendMore(fixture.log, `agent-${agentId(index)}`, [agentUpdated({ name: 'New' })]);
    start();
    const after = await read([agents], 40);
    const places = new Set(after.map(({ key, partition }) => `${key} ${partition}`));
    expect(places.size).toBe(20);
  });

  test('keeps events for ever where the relay makes it, and a shorter time is said where it does not', async () => {
    const { agents, sessions } = topicsOf(fixture.prefix);
    await create({
      topic: agents,
      numPartitions: 1,
      configEntries: [{ name: 'retention.ms', value: '604800000' }],
    });
    await appendAgents(fixture.log, 0, 1);
    const warnings: string[] = [];
    const logger = {
      debug: () => undefined,
      warn: (_: object, line: string) => void warnings.push(line),
    };
    start({ options: { logger } });
    await read([agents], 1);
    expect(await configOf(sessions, 'retention.ms')).toBe('-1');
    expect(warnings).toEqual([
      `The topic ${agents} keeps events for 7 days (retention.ms=604800000); KAFKA_RETENTION wants them indefinitely`,
    ]);
  });
});

onKafka('a message that its topic refuses as too large', () => {
  const LIMIT = 20_000;

  async function limit(bytes: number): Promise<void> {
    const configEntries = [{ name: 'max.message.bytes', value: String(bytes) }];
    await create({ topic: topicsOf(fixture.prefix).agents, numPartitions: 3, configEntries });
  }

  test('parks its key and nothing else, is named, and is parked for the next relay too', async () => {
    await limit(LIMIT);
    const large = `agent-${agentId(0)}`;
    await appendTo(fixture.log, large, [agentCreated()]);
    await appendMore(fixture.log, large, [agentUpdated({ instruction: 'x'.repeat(LIMIT) })]);
    await appendMore(fixture.log, large, [agentUpdated({ name: 'After' })]);
    const last = await appendAgents(fixture.log, 1, 20);
    const first = start();
    await untilHealth(first, ({ position }) => position === last);
    const { parked, state } = await first.health();
    const stored = await fixture.log.readStream(large, { direction: 'forwards', limit: 10 });
    expect(state).toBe('relaying');
    expect(parked).toMatchObject({
      count: 1,
      keys: [{ topic: topicsOf(fixture.prefix).agents, key: agentId(0), event_id: stored[1]?.id }],
    });
    await first.close();

    const late = await appendMore(fixture.log, large, [agentUpdated({ name: 'Later' })]);
    const second = start();
    await untilHealth(second, ({ position }) => position === late);
    expect((await second.health()).parked?.count).toBe(1);
    const received = await read([topicsOf(fixture.prefix).agents], 20);
    expect(received.filter(({ key }) => key === agentId(0))).toHaveLength(1);
    const dead = (await read([`${fixture.prefix}.dead-letter`], 3)).map(
      ({ value }) => JSON.parse(value!) as { event_id: string; size: number; revision: number },
    );
    expect(dead.map(({ revision }) => revision)).toEqual([1, 2, 3]);
    expect(dead[0]).toEqual({
      reason: 'larger than its topic takes',
      topic: topicsOf(fixture.prefix).agents,
      event_id: stored[1]?.id,
      type: 'turnlog.agent.updated.v1',
      stream: large,
      revision: 1,
      position: stored[1]?.position,
      size: expect.any(Number),
    });
  });

  test('is told from one that just fits, to the byte', async () => {
    await limit(LIMIT);
    const created = (index: number, length: number) =>
      appendTo(fixture.log, `agent-${agentId(index)}`, [
        agentCreated({ instruction: 'x'.repeat(length) }),
      ]);
    let last = await created(0, LIMIT);
    const relay = start();
    const published = () => untilHealth(relay, ({ position }) => position === last);
    const overhead = ((await published()).parked?.keys[0]?.size ?? 0) - LIMIT;
    for (const beyond of [-2, -1, 0, 1, 2])
      last = await created(9 + beyond, LIMIT - overhead + beyond);
    const { parked } = await published();
    expect(parked?.keys.map(({ key }) => key)).toEqual([0, 10, 11].map(agentId));
    const received = await read([topicsOf(fixture.prefix).agents], 3);
    expect(received.map(({ key }) => key).toSorted()).toEqual([7, 8, 9].map(agentId));
    expect(relay.lines.filter(({ level }) => level === 'warn')).toEqual([]);
  });
});
