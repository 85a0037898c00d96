import { randomUUID } from 'node:crypto';
import type { Kafka } from 'kafkajs';
import { mapInSlices } from '../../shared/lib/concurrency/yieldToEventLoop.ts';
import type { Publication } from '../../shared/publicEvents/publisher.ts';
import { reportsErasure } from '../../shared/publicEvents/erasedTexts.ts';
import type { PublicEvent } from '../../shared/publicEvents/publicEvent.ts';
import { fencedError, kafkaCall } from './errors.ts';
import type { CheckpointRecords, CheckpointRecordReader } from './checkpoints/recordReader.ts';
import { readCheckpointRecord, checkpointRecordKeys } from './checkpoints/recordValues.ts';
import { createDeadLetterQueue, deadLetterEventId } from './deadLetters.ts';
import type { KafkaPublisherOptions } from './options.ts';
import { createPartitioner, groupIntoSends, type TopicSend, type TextMessage } from './batching.ts';
import { isCompacted, type Topic } from './topics.ts';
import type { TransactionalProducer } from './transactions.ts';
import { scanTopics } from './scanTopics.ts';
import { createWrittenOffsets } from './checkpoints/writtenOffsets.ts';
import { CloudEvent, Kafka as CloudEventsKafka } from 'cloudevents';
import { buildAttributes } from '../../shared/publicEvents/cloudEvent.ts';

/**
 * Removes headers that the binding adds: those of absent attributes, and the content type under a
 * second name that the specification does not define.
 */
const toHeaders = (headers: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers as Record<string, string | number | undefined>).flatMap(
      ([name, value]) =>
        value === undefined || name === 'ce_datacontenttype' ? [] : [[name, String(value)]],
    ),
  );

/**
 * Follows the last event of an erased key in a compacted topic: the brokers remove all messages of
 * the key, and in time the tombstone.
 */
const toTombstone = ({ key }: PublicEvent): TextMessage => ({ key, value: null });

/**
 * The Kafka message of a public event: a CloudEvent in binary mode, whose headers the public
 * contract describes.
 */
export function toMessage(event: PublicEvent, source: string): TextMessage & { value: string } {
  const cloudEvent = new CloudEvent({
    ...buildAttributes(event, source),
    data: JSON.stringify(event.data),
  });
  const { headers, value } = CloudEventsKafka.binary(cloudEvent);
  return { key: event.key, value: value as string, headers: toHeaders(headers) };
}

interface Prepared {
  kafka: Kafka;
  options: KafkaPublisherOptions;
  producer: TransactionalProducer;
  notes: CheckpointRecordReader;
  /** All topics that are written to, as described before the take-over. */
  topics: ReadonlyMap<string, Topic>;
  /**
   * Describes topics again that seem to lack messages of the records. Throws `publisher_unavailable`
   * when a topic is gone.
   */
  refreshTopics: (
    topics: ReadonlyMap<string, Topic>,
    records: CheckpointRecords,
  ) => Promise<ReadonlyMap<string, Topic>>;
  /** Throws `publisher_unavailable` when a topic is gone. */
  requireTopics: () => Promise<void>;
}

/** Creates the function that splits a topic's messages into sends. */
function createLane(name: string, { maxMessageBytes }: Topic, partitions: number) {
  const partitionOf = createPartitioner(partitions);
  return (messages: readonly TextMessage[]): TopicSend[] =>
    groupIntoSends(
      name,
      messages.map((message) => ({ ...message, partition: partitionOf(message.key) })),
      maxMessageBytes,
    );
}

function createPublishingSession(
  { kafka, options, producer, topics, requireTopics }: Prepared,
  notes: CheckpointRecords,
): Publication {
  const { checkpointTopic, deadLetterTopic, source, transactionalId } = options;
  const keys = checkpointRecordKeys(transactionalId);
  const checkpointSend = (messages: TextMessage[]): TopicSend => ({
    topic: checkpointTopic,
    messages: messages.map((message) => ({ ...message, partition: 0 })),
    description: 'the checkpoint',
  });
  const alive = checkpointSend([{ key: keys.alive, value: '' }]);
  const deadLetters = createDeadLetterQueue(notes, keys.parked, deadLetterTopic !== undefined);
  const openTopic = (name: string) => {
    const topic = topics.get(name)!;
    const written = createWrittenOffsets(notes, keys.topic(name), { name, topic });
    return { name, topic, written, cut: createLane(name, topic, written.partitions) };
  };
  const tombstonesOf = (topic: string, event: PublicEvent): TextMessage[] =>
    reportsErasure(event) && isCompacted(topics.get(topic)!) ? [toTombstone(event)] : [];
  const published = [...new Set(Object.values(options.topics))].map(openTopic);
  const dead = deadLetterTopic === undefined ? undefined : openTopic(deadLetterTopic);

  return {
    checkpoint: readCheckpointRecord(notes, keys.checkpoint),
    async publish(events, reached) {
      const messages = await mapInSlices(transactionalId, events, (event) => ({
        event,
        topic: options.topics[event.channel],
        message: toMessage(event, source),
      }));
      const sorted = deadLetters.sort(messages, (name) => topics.get(name)!.maxMessageBytes);
      const sends = published.flatMap(({ name, cut }) =>
        cut(
          sorted.sendable
            .filter(({ topic }) => topic === name)
            .flatMap(({ event, message }) => [message, ...tombstonesOf(name, event)]),
        ),
      );
      const committed = [sorted.committed];
      await producer.commit(alive, [...sends, ...(dead?.cut(sorted.dead) ?? [])], (metadata) => {
        const offsetNotes = published.flatMap(({ written }) => written.note(metadata) ?? []);
        committed.push(...offsetNotes.map((note) => note.committed));
        // The checkpoint is last: if a broker violated atomicity and showed half of a transaction,
        // events would be duplicated, but none would be lost.
        return checkpointSend([
          ...offsetNotes.map(({ message }) => message),
          ...sorted.notes,
          { key: keys.checkpoint, value: JSON.stringify(reached) },
        ]);
      });
      for (const remember of committed) remember();
    },
    async beat() {
      await requireTopics();
      await producer.commit(alive);
    },
    visitPublished: (visit, signal) =>
      kafkaCall(() =>
        scanTopics(kafka, {
          topics: [...published, ...(dead ? [dead] : [])].map(({ name }) => name),
          group: transactionalId,
          visit: ({ headers, value }) =>
            visit(headers?.['ce_id']?.toString() ?? deadLetterEventId(value) ?? ''),
          signal,
        }),
      ),
    parked: deadLetters.shown,
    close: producer.close,
  };
}

/**
 * Fences the previous publisher, and continues where it ended. Throws the errors of
 * toPublisherError.
 */
export async function startProducerSession(prepared: Prepared): Promise<Publication> {
  const { checkpointTopic: topic, transactionalId } = prepared.options;
  const token = {
    key: checkpointRecordKeys(transactionalId).takenOver,
    value: randomUUID(),
    partition: 0,
  };
  // All earlier commits are final: the predecessor is fenced from this message on.
  const commit = (): Promise<void> =>
    prepared.producer.commit({ topic, messages: [token], description: 'the take-over' });
  const records = await kafkaCall(() => prepared.notes.commitAndRead(token, commit), {
    topic,
    transactionalId,
  });
  if (records.get(token.key)?.value !== token.value) throw fencedError();
  // Otherwise messages that the predecessor published since would count as lost.
  const topics = await prepared.refreshTopics(prepared.topics, records);
  return createPublishingSession({ ...prepared, topics }, records);
}
