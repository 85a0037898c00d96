import type { Publisher } from '../../shared/publicEvents/publisher.ts';
import { createKafka, withAdmin } from './client.ts';
import { kafkaCall } from './errors.ts';
import { createCheckpointRecordReader } from './checkpoints/recordReader.ts';
import {
  checkpointRecordKeys,
  createRecordKeyCheck,
  readCheckpointRecord,
} from './checkpoints/recordValues.ts';
import type { KafkaPublisherOptions } from './options.ts';
import { createOwnTopics } from './ownTopics.ts';
import { startProducerSession } from './producerSession.ts';
import { endOffsetOf } from './topics.ts';
import { openTransactionalProducer, type TransactionalProducer } from './transactions.ts';

/**
 * Publishes to Kafka, with messages and checkpoint in one transaction, so that a consumer of
 * committed messages sees every event once. Requires brokers from Kafka 2.4 on;
 * infra/kafka/README.md lists the tested versions.
 */
export function openKafkaPublisher(options: KafkaPublisherOptions): Publisher {
  const { brokers, security, transactionalId, checkpointTopic, deadLetterTopic, logger } = options;
  const kafka = createKafka({ brokers, security, clientId: transactionalId, logger });
  const keys = checkpointRecordKeys(transactionalId);
  const writtenTopics = [
    ...Object.values(options.topics),
    ...(deadLetterTopic === undefined ? [] : [deadLetterTopic]),
  ];
  const openProducers = new Set<TransactionalProducer>();
  const notes = createCheckpointRecordReader(kafka, {
    topic: checkpointTopic,
    group: transactionalId,
    isOwnKey: createRecordKeyCheck(transactionalId, writtenTopics),
  });
  const ownTopics = createOwnTopics(kafka, options, notes);
  const readRecords = () => kafkaCall(notes.readAll, { topic: checkpointTopic, transactionalId });

  async function openProducer(): Promise<TransactionalProducer> {
    const connected = await openTransactionalProducer(kafka, transactionalId);
    const producer: TransactionalProducer = {
      commit: connected.commit,
      async close() {
        openProducers.delete(producer);
        await connected.close();
      },
    };
    openProducers.add(producer);
    return producer;
  }

  return {
    async takeOver() {
      const topics = await ownTopics.create();
      const producer = await openProducer();
      try {
        const { requireAll: requireTopics, refresh: refreshTopics } = ownTopics;
        return await startProducerSession({
          kafka,
          options,
          producer,
          notes,
          topics,
          refreshTopics,
          requireTopics,
        });
      } catch (error) {
        await producer.close();
        throw error;
      }
    },
    checkpoint: async () => readCheckpointRecord(await readRecords(), keys.checkpoint),
    lost: ownTopics.lost,
    async activity() {
      const records = await readRecords();
      const offsets = [keys.checkpoint, keys.alive].map((key) => records.get(key)?.offset ?? '');
      return offsets.join(' ');
    },
    isEmpty: () =>
      kafkaCall(() =>
        withAdmin(kafka, async (admin) => {
          const published = new Set(Object.values(options.topics));
          const ends = await Promise.all([...published].map((topic) => endOffsetOf(admin, topic)));
          return ends.every((end) => end === 0n);
        }),
      ),
    async close() {
      await Promise.all([notes.close(), ...[...openProducers].map((producer) => producer.close())]);
    },
  };
}
