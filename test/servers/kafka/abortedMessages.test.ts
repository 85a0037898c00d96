/** A transaction of a relay that was killed, aborted after another producer's that began later. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { createKafka } from '../../../infra/kafka/client.ts';
import { retryRequest } from '../../../infra/kafka/retryRequest.ts';
import { scanTopics } from '../../../infra/kafka/scanTopics.ts';
import { openTransactionalProducer } from '../../../infra/kafka/transactions.ts';
import { startKafkaServer } from '../../support/servers/kafka/kafkaServer.ts';
import { administer } from '../../support/servers/kafka/kafkaTopics.ts';
import { uniquePrefix } from '../../support/servers/kafka/relay.ts';

const kafka = await startKafkaServer();
const onKafka = kafka ? describe : describe.skip;
afterAll(async () => kafka?.close());

onKafka('a scan of topics', () => {
  test('visits no message that was never committed', async () => {
    const brokers = kafka!.brokers;
    const prefix = uniquePrefix();
    const topic = `${prefix}.agents`;
    const logger = { debug: () => undefined, warn: () => undefined };
    const client = createKafka({ brokers: brokers.split(','), clientId: prefix, logger });
    await administer(brokers, (admin) =>
      admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true }),
    );
    const begin = async (name: string) => {
      const producer = client.producer({ transactionalId: `${prefix}.${name}` });
      await producer.connect();
      const transaction = await producer.transaction();
      await transaction.send({ topic, messages: [{ partition: 0, value: `${name} aborted` }] });
      return { producer, transaction };
    };
    const killed = await begin('relay');
    const other = await begin('other');
    await other.transaction.abort();
    const successor = await openTransactionalProducer(client, `${prefix}.relay`);
    await successor.commit({
      topic,
      messages: [{ partition: 0, key: 'relay', value: 'committed' }],
      description: 'a message',
    });
    const scan = async (): Promise<string[]> => {
      const visited: string[] = [];
      await scanTopics(client, {
        topics: [topic],
        group: prefix,
        visit: ({ value }) => void visited.push(String(value)),
        signal: new AbortController().signal,
      });
      return visited;
    };
    // A broker that has just started may still load its coordinator of groups.
    expect(await retryRequest(scan)).toEqual(['committed']);
    for (const { disconnect } of [killed.producer, other.producer]) await disconnect();
    await successor.close();
  });
});
