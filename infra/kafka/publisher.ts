import { randomUUID } from 'node:crypto';
import type { Kafka } from 'kafkajs';
import type { Publication, Publisher } from '../../shared/ports/publisher.ts';
import type { Channel } from '../../shared/publicEvents/schema.ts';
import { createKafka, withAdmin, type KafkaLogger, type KafkaSecurity } from './client.ts';
import { kafkaCall } from './errors.ts';
import { toMessage } from './message.ts';
import { parseCheckpoint } from './checkpoint.ts';
import { createNotesReader, type NotesReader } from './notes.ts';
import { visitPublishedIds } from './publishedIds.ts';
import { intoSends } from './sends.ts';
import { endOf, ensureTopics } from './topics.ts';
import { openTransactionalProducer, type TransactionalProducer } from './transactions.ts';

export interface KafkaPublisherOptions {
  brokers: readonly string[];
  security?: KafkaSecurity | undefined;
  /** Where the events of each channel go; a channel may share its topic with another. */
  topics: Readonly<Record<Channel, string>>;
  /** For this publisher alone: one partition, compacted. */
  checkpointTopic: string;
  /** Publishers with the same id take over from each other. Also the key of the checkpoint. */
  transactionalId: string;
  /** Of topics that have to be created. */
  partitions: number;
  /** `ce_source`. */
  source: string;
  logger: KafkaLogger;
}

const takenOverKey = (transactionalId: string): string => `${transactionalId}.taken-over`;
const aliveKey = (transactionalId: string): string => `${transactionalId}.alive`;

async function takeOver(
  kafka: Kafka,
  notes: NotesReader,
  producer: TransactionalProducer,
  { topics, checkpointTopic, transactionalId, source }: KafkaPublisherOptions,
): Promise<Publication> {
  const note = (key: string, value: string) => ({
    topic: checkpointTopic,
    message: { key, value },
  });
  const alive = note(aliveKey(transactionalId), '');
  // Whatever was committed before this message was committed for good: the predecessor is fenced
  // from here on.
  const token = { key: takenOverKey(transactionalId), value: randomUUID() };
  await producer.commit(note(token.key, token.value), []);
  const found = await kafkaCall(() => notes.until(token.key, token.value));
  const checkpoint = parseCheckpoint(found.get(transactionalId)?.value);
  return {
    checkpoint,
    publish(events, reached) {
      const messages = events.map((event) => ({
        topic: topics[event.channel],
        message: toMessage(event, source),
      }));
      const { topic, message } = note(transactionalId, JSON.stringify(reached));
      // The checkpoint last: should a broker ever break its promise and show half of a transaction,
      // events come twice, but none is left out.
      return producer.commit(alive, [...intoSends(messages), [{ topic, messages: [message] }]]);
    },
    beat: () => producer.commit(alive, []),
    visitPublished: (visit, signal) =>
      kafkaCall(() =>
        visitPublishedIds(kafka, {
          topics: [...new Set(Object.values(topics))],
          group: transactionalId,
          visit,
          signal,
        }),
      ),
    close: producer.close,
  };
}

/**
 * Publishes to Kafka: messages and checkpoint in one transaction, so a consumer of committed
 * messages sees every event once. Needs brokers from Kafka 2.4 on; see infra/kafka/README.md for
 * what was run.
 */
export function openKafkaPublisher(options: KafkaPublisherOptions): Publisher {
  const { brokers, security, transactionalId, topics, checkpointTopic, partitions, logger } =
    options;
  const kafka = createKafka({ brokers, security, clientId: transactionalId, logger });
  const published = [...new Set(Object.values(topics))];
  const open = new Set<TransactionalProducer>();
  const notes = createNotesReader(kafka, { topic: checkpointTopic, keys: transactionalId });
  let prepared = false;

  async function prepare(): Promise<void> {
    if (!prepared)
      await withAdmin(kafka, (admin) =>
        ensureTopics(admin, { published, checkpoints: checkpointTopic, partitions }),
      );
    prepared = true;
  }

  return {
    async takeOver() {
      await kafkaCall(prepare);
      const connected = await openTransactionalProducer(kafka, transactionalId);
      const producer: TransactionalProducer = {
        commit: connected.commit,
        async close() {
          open.delete(producer);
          await connected.close();
        },
      };
      open.add(producer);
      try {
        return await takeOver(kafka, notes, producer, options);
      } catch (error) {
        await producer.close();
        throw error;
      }
    },
    checkpoint: () =>
      kafkaCall(async () => parseCheckpoint((await notes.now()).get(transactionalId)?.value)),
    activity: () =>
      kafkaCall(async () => {
        const found = await notes.now();
        const offsetOf = (key: string): string => found.get(key)?.offset ?? '';
        return `${offsetOf(transactionalId)} ${offsetOf(aliveKey(transactionalId))}`;
      }),
    isEmpty: () =>
      kafkaCall(() =>
        withAdmin(kafka, async (admin) => {
          const ends = await Promise.all(published.map((topic) => endOf(admin, topic)));
          return ends.every((end) => end === 0n);
        }),
      ),
    async close() {
      await Promise.all([notes.close(), ...[...open].map((producer) => producer.close())]);
    },
  };
}
