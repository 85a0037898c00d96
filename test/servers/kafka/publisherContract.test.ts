import { afterAll, beforeAll, describe, jest, test } from '@jest/globals';
import { openKafkaPublisher } from '../../../infra/kafka/publisher.ts';
import { publisherContract } from '../../contracts/publisher.ts';
import { eventually } from '../../support/processes/operator.ts';
import { startKafkaServer } from '../../support/servers/kafka/kafkaServer.ts';
import { publisherOptions, uniquePrefix } from '../../support/servers/kafka/relay.ts';

jest.setTimeout(120_000);

const kafka = await startKafkaServer();

if (kafka) {
  const openAs = (prefix: string) => openKafkaPublisher(publisherOptions(kafka.brokers, prefix));

  // A broker that has just started refuses take-overs while it loads its coordinator.
  beforeAll(async () => {
    const publisher = openAs(uniquePrefix());
    const takesOver = () =>
      publisher.takeOver().then(
        () => true,
        () => false,
      );
    await eventually(takesOver, (isDone) => isDone);
    await publisher.close();
  });
  afterAll(kafka.close);

  publisherContract('a publisher to Kafka', async () => {
    const prefix = uniquePrefix();
    return { open: () => openAs(prefix), dispose: async () => undefined };
  });
} else describe('a publisher to Kafka', () => test.skip('needs Kafka', () => undefined));
