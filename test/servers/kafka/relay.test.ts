import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, jest, test } from '@jest/globals';
import { openKafkaPublisher } from '../../../infra/kafka/publisher.ts';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore/eventStore.ts';
import {
  republishLog,
  type RepublishProgress,
} from '../../../services/followers/relay/republishLog.ts';
import { toPublicEvents } from '../../../shared/publicEvents/toPublicEvents.ts';
import { retry } from '../../../shared/lib/time/backoff.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import {
  collectFrom,
  type CollectingConsumer,
  type Received,
} from '../../support/servers/kafka/kafkaConsumer.ts';
import { setUpRelayTests } from '../../support/servers/kafka/relayFixture.ts';
import { administer, untilTopicsExist } from '../../support/servers/kafka/kafkaTopics.ts';
import { agentId, appendAgents, appendTo } from '../../support/stores/projections/projector.ts';
import {
  accountOpened,
  agentCreated,
  agentData,
  agentUpdated,
  keyIssued,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnStarted,
} from '../../support/builders/events.ts';
import { reached, recordHistory } from '../../support/builders/history.ts';
import {
  publisherOptions,
  relayToKafka,
  topicsOf,
  type TestRelay,
} from '../../support/servers/kafka/relay.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

jest.setTimeout(60_000);

const { fixture, brokers, onKafka } = await setUpRelayTests();

function start(
  ...changes: Parameters<typeof relayToKafka> extends [string, string, unknown, ...infer Rest]
    ? Rest
    : never
): TestRelay {
  const relay = relayToKafka(brokers, fixture.prefix, fixture.log, ...changes);
  fixture.closing.push(relay.close);
  return relay;
}

async function consume(
  topics: string[] = Object.values(topicsOf(fixture.prefix)),
): Promise<CollectingConsumer> {
  await untilTopicsExist(brokers, topics);
  const consumer = await collectFrom(brokers, topics);
  fixture.closing.push(consumer.close);
  return consumer;
}

const count = (wanted: number) => (received: Received[]) => received.length >= wanted;
const revisionsOf = (received: Received[], key: string) =>
  received
    .filter((message) => message.key === key)
    .map(({ headers }) => Number(headers['ce_streamrevision']));

async function untilHealth(
  relay: TestRelay,
  holds: (health: Awaited<ReturnType<TestRelay['health']>>) => boolean,
): Promise<void> {
  while (!holds(await relay.health())) await sleep(20);
}

async function appendConversation(): Promise<Position> {
  await appendTo(fixture.log, 'account-acct_1', [accountOpened(), keyIssued('key_1')]);
  await appendTo(fixture.log, 'agent-agent_1', [agentCreated()]);
  return appendTo(fixture.log, 'session-session_1', [
    sessionStarted('agent_1'),
    turnStarted(1),
    toolCalled(1),
    turnCompleted(1),
  ]);
}

onKafka('relaying to Kafka', () => {
  test('events arrive as CloudEvents in binary mode, keyed, on the topic of their kind, and account events do not', async () => {
    await appendConversation();
    start();
    const { until } = await consume();
    const received = await until(count(5));
    const [agent] = received.filter(({ topic }) => topic === topicsOf(fixture.prefix).agents);
    const sessions = received.filter(({ topic }) => topic === topicsOf(fixture.prefix).sessions);
    const [first] = await fixture.log.readStream('agent-agent_1', {
      direction: 'forwards',
      limit: 1,
    });
    expect(agent?.headers).toEqual({
      'content-type': 'application/json',
      ce_specversion: '1.0',
      ce_id: first?.id,
      ce_type: 'turnlog.agent.created.v1',
      ce_source: '/turnlog',
      ce_subject: 'agent_1',
      ce_time: '2026-01-01T00:00:00.000Z',
      ce_partitionkey: 'agent_1',
      ce_accountid: 'acct_1',
      ce_streamrevision: '0',
      ce_position: first?.position,
      ce_correlationid: 'request',
      ce_causationid: 'request',
      ce_traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/),
    });
    expect(JSON.parse(agent?.value ?? '')).toEqual({ agent_id: 'agent_1', ...agentData() });
    expect(sessions.map(({ key, headers }) => [key, headers['ce_type']])).toEqual(
      ['started', 'turn_started', 'tool_called', 'turn_completed'].map((name) => [
        'session_1',
        `turnlog.session.${name}.v1`,
      ]),
    );
    expect(received).toHaveLength(5);
  });

  test('what is appended later follows, and the health shows that nothing is left', async () => {
    const relay = start();
    const { until } = await consume();
    await appendAgents(fixture.log, 0, 1, 1);
    await until(count(2));
    const last = await appendAgents(fixture.log, 1, 2, 1);
    await until(count(4));
    await untilHealth(relay, ({ position }) => position === last);
    expect(await relay.health()).toEqual({ state: 'relaying', position: last, lag_ms: 0 });
  });

  test('a relay that is started again goes on where the last one was', async () => {
    await appendAgents(fixture.log, 0, 3, 2);
    const first = start();
    const { until, received } = await consume();
    await until(count(9));
    await first.close();
    await appendAgents(fixture.log, 3, 4, 2);
    start();
    await until(count(12));
    expect(new Set(received.map(({ headers }) => headers['ce_id'])).size).toBe(12);
    expect(received).toHaveLength(12);
  });

  test('a second relay fences the first, which stands by and takes over when the second falls silent', async () => {
    // The second gives a sign of life several times within the first one's patience, and has it
    // fenced until it is closed.
    const first = start({ takeOverMs: 4_000 });
    await untilHealth(first, ({ state }) => state === 'relaying');
    const second = start({ takeOverMs: 1_000 });
    await untilHealth(second, ({ state }) => state === 'relaying');
    const { until, received } = await consume();
    await appendAgents(fixture.log, 0, 2, 1);
    await untilHealth(first, ({ state }) => state === 'standing_by');
    expect(await first.health()).toMatchObject({ lag_ms: null });
    await until(count(4));
    await second.close();
    await untilHealth(first, ({ state }) => state === 'relaying');
    await appendAgents(fixture.log, 2, 3, 1);
    await until(count(6));
    expect(received.map(({ headers }) => headers['ce_id'])).toHaveLength(6);
    for (const index of [0, 1, 2]) expect(revisionsOf(received, agentId(index))).toEqual([0, 1]);
  });

  test('events of nearly a mebibyte pass, many at once', async () => {
    const instruction = 'x'.repeat(1_000_000);
    for (let index = 0; index < 8; index += 1)
      await appendTo(fixture.log, `agent-${agentId(index)}`, [agentCreated({ instruction })]);
    start();
    const { until } = await consume();
    const received = await until(count(8));
    expect(
      received.map(
        ({ value }) => (JSON.parse(value!) as { instruction: string }).instruction.length,
      ),
    ).toEqual(Array.from({ length: 8 }, () => 1_000_000));
  });

  test('a relay can begin after any position', async () => {
    const after = await appendAgents(fixture.log, 0, 3, 2);
    await appendAgents(fixture.log, 3, 4, 2);
    start({ startAfter: after });
    const { until } = await consume();
    const received = await until(count(3));
    expect(received.map(({ key }) => key)).toEqual([agentId(3), agentId(3), agentId(3)]);
  });

  test('a checkpoint of another log stops the relay before it leaves anything out', async () => {
    await appendAgents(fixture.log, 0, 3, 2);
    const first = start();
    await (await consume()).until(count(9));
    await first.close();
    const otherFolder = await temporaryFolder();
    const other = await openSqliteEventStore({ folder: otherFolder });
    await appendAgents(other, 0, 1);
    const relay = relayToKafka(brokers, fixture.prefix, other);
    // Taking over may fail a few times before, while the broker still finishes the last
    // transaction.
    while (!relay.lines.some(({ fields }) => String(fields['err']).includes('The log has changed')))
      await sleep(20);
    expect(await relay.health()).toMatchObject({ state: 'retrying', position: undefined });
    await relay.close();
    await other.close();
    await rm(otherFolder, { recursive: true });
  });

  test('while the broker is away the relay retries, says so, and its lag grows', async () => {
    await appendAgents(fixture.log, 0, 1);
    const relay = relayToKafka('127.0.0.1:9', fixture.prefix, fixture.log);
    await untilHealth(relay, ({ state, lag_ms }) => state === 'retrying' && (lag_ms ?? 0) > 0);
    expect(relay.lines[0]).toMatchObject({
      level: 'warn',
      fields: { err: { code: 'publisher_unavailable' }, retry_in_ms: 100 },
    });
    await relay.close();
  });
});

onKafka('replaying into a topic', () => {
  function replayInto(
    topic: string,
    options: {
      after?: Position;
      only?: 'agents' | 'sessions';
      signal?: AbortSignal;
      onProgress?: (progress: RepublishProgress) => void;
    } = {},
  ): Promise<boolean> {
    const publisher = openKafkaPublisher({
      ...publisherOptions(brokers, fixture.prefix),
      topics: { agents: topic, sessions: topic },
      checkpointTopic: `${topic}.checkpoint`,
      transactionalId: `${fixture.prefix}.replay.${topic}`,
    });
    fixture.closing.push(publisher.close);
    return republishLog({
      log: fixture.log,
      publisher,
      after: options.after,
      only: options.only,
      signal: options.signal ?? new AbortController().signal,
      onProgress: options.onProgress ?? (() => undefined),
    });
  }

  test('publishes all there is, once, beside a running relay, with progress', async () => {
    const head = await appendAgents(fixture.log, 0, 800, 2);
    start();
    const live = await consume();
    const progress: RepublishProgress[] = [];
    expect(
      await replayInto(`${fixture.prefix}.again`, { onProgress: (step) => progress.push(step) }),
    ).toBe(true);
    expect(progress.map(({ published, percent }) => [published, Math.round(percent)])).toEqual([
      [1000, 42],
      [2000, 83],
      [2400, 100],
    ]);
    expect(progress.at(-1)?.position).toBe(head);
    const again = await (await consume([`${fixture.prefix}.again`])).until(count(2400));
    const received = await live.until(count(2400));
    const ids = (messages: Received[]) => new Set(messages.map(({ headers }) => headers['ce_id']));
    expect(ids(again)).toEqual(ids(received));
    expect(ids(again).size).toBe(2400);
  });

  test('an interrupted replay goes on where it was', async () => {
    await appendAgents(fixture.log, 0, 800, 2);
    const interrupted = new AbortController();
    expect(
      await replayInto(`${fixture.prefix}.again`, {
        signal: interrupted.signal,
        onProgress: () => interrupted.abort(),
      }),
    ).toBe(false);
    expect(await replayInto(`${fixture.prefix}.again`)).toBe(true);
    const received = await (await consume([`${fixture.prefix}.again`])).until(count(2400));
    expect(new Set(received.map(({ headers }) => headers['ce_id'])).size).toBe(2400);
    expect(received).toHaveLength(2400);
  });

  test('begins after a position and leaves out what was not asked for', async () => {
    const after = await appendAgents(fixture.log, 0, 3, 2);
    await appendConversation();
    expect(await replayInto(`${fixture.prefix}.some`, { after, only: 'sessions' })).toBe(true);
    const received = await (await consume([`${fixture.prefix}.some`])).until(count(4));
    expect(received.map(({ key }) => key)).toEqual([
      'session_1',
      'session_1',
      'session_1',
      'session_1',
    ]);
  });

  test('refuses a topic that holds something else', async () => {
    await appendAgents(fixture.log, 0, 1);
    start();
    await (await consume()).until(count(1));
    await expect(replayInto(topicsOf(fixture.prefix).agents)).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringContaining('already holds messages'),
    });
  });
});

onKafka('a batch', () => {
  test('whose checkpoint the broker refuses is not published', async () => {
    const { record } = recordHistory();
    const stream = `agent-${agentId(0)}`;
    const created = record({ stream }, agentCreated());
    const updated = record({ stream }, agentUpdated());
    const publisher = openKafkaPublisher(publisherOptions(brokers, fixture.prefix));
    fixture.closing.push(publisher.close);
    // A broker that has just begun, or still undoes a transaction, refuses a few times.
    const takeOver = () =>
      retry(publisher.takeOver, {
        pauses: { firstMs: 100, longestMs: 500 },
        shouldRetry: (_error, failures) => failures < 30,
      });
    const refused = await takeOver();
    const { checkpoint } = reached(created.position);
    const tooLarge = { ...checkpoint!, log_id: 'x'.repeat(2 * 1_024 * 1_024) };
    await expect(refused.publish(toPublicEvents([created]), tooLarge)).rejects.toMatchObject({
      code: 'publisher_unavailable',
      message: expect.stringContaining('message larger than'),
    });
    await refused.close();

    const next = await takeOver();
    expect(next.checkpoint).toBeUndefined();
    await next.publish(toPublicEvents([updated]), reached(updated.position).checkpoint!);
    // One key has its order: what had been published before would come first.
    const received = await (await consume()).until(count(1));
    expect(received.map(({ headers }) => headers['ce_id'])).toEqual([updated.id]);
  });
});

onKafka('the topics', () => {
  test('are created when they are missing: the checkpoint compacted in one partition, the others as configured', async () => {
    await appendAgents(fixture.log, 0, 1);
    start();
    await (await consume()).until(count(1));
    const { topics } = await administer(brokers, (admin) =>
      admin.fetchTopicMetadata({
        topics: [topicsOf(fixture.prefix).agents, `${fixture.prefix}.checkpoints`],
      }),
    );
    expect(topics.map(({ name, partitions }) => [name, partitions.length])).toEqual(
      expect.arrayContaining([
        [topicsOf(fixture.prefix).agents, 3],
        [`${fixture.prefix}.checkpoints`, 1],
      ]),
    );
    const { resources } = await administer(brokers, (admin) =>
      admin.describeConfigs({
        includeSynonyms: false,
        resources: [
          { type: 2, name: `${fixture.prefix}.checkpoints`, configNames: ['cleanup.policy'] },
        ],
      }),
    );
    expect(resources[0]?.configEntries).toMatchObject([
      { configName: 'cleanup.policy', configValue: 'compact' },
    ]);
  });
});
