import type { Publisher } from '../../shared/publicEvents/publisher.ts';
import { createKafka, withAdmin } from './client.ts';
import { kafkaCall } from './errors.ts';
import { createCheckpointRecordReader } from './checkpoints/recordReader.ts';
import { readCheckpointRecord, checkpointRecordKeys } from './checkpoints/recordValues.ts';
import type { KafkaPublisherOptions } from './options.ts';
import { createOwnTopics } from './ownTopics.ts';
import { startProducerSession } from './producerSession.ts';
import { endOffsetOf } from './topics.ts';
import { openTransactionalProducer, type TransactionalProducer } from './transactions.ts';

/**
 * Publishes to Kafka: messages and checkpoint in one transaction, so a consumer of committed
 * messages sees every event once. Needs brokers from Kafka 2.4 on; see infra/kafka/README.md for
 * what was run.
 */
export function openKafkaPublisher(options: KafkaPublisherOptions): Publisher {
  const { brokers, security, transactionalId, checkpointTopic, logger } = options;
  const kafka = createKafka({ brokers, security, clientId: transactionalId, logger });
  const keys = checkpointRecordKeys(transactionalId);
  const open = new Set<TransactionalProducer>();
  const notes = createCheckpointRecordReader(kafka, {
    topic: checkpointTopic,
    keys: transactionalId,
  });
  const ownTopics = createOwnTopics(kafka, options, notes);
  const notesNow = () => kafkaCall(notes.readAll, { topic: checkpointTopic, transactionalId });

  async function openProducer(): Promise<TransactionalProducer> {
    const connected = await openTransactionalProducer(kafka, transactionalId);
    const producer: TransactionalProducer = {
      commit: connected.commit,
      async close() {
        open.delete(producer);
        await connected.close();
      },
    };
    open.add(producer);
    return producer;
  }

  return {
    async takeOver() {
      const topics = await ownTopics.create();
      const producer = await openProducer();
      try {
        const { requireAll: requireTopics } = ownTopics;
        return await startProducerSession({
          kafka,
          options,
          producer,
          notes,
          topics,
          requireTopics,
        });
      } catch (error) {
        await producer.close();
        throw error;
      }
    },
    checkpoint: async () => readCheckpointRecord(await notesNow(), keys.checkpoint),
    lost: ownTopics.lost,
    async activity() {
      const found = await notesNow();
      const offsets = [keys.checkpoint, keys.alive].map((key) => found.get(key)?.offset ?? '');
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
      await Promise.all([notes.close(), ...[...open].map((producer) => producer.close())]);
    },
  };
}
