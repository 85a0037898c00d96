import type { Kafka } from 'kafkajs';
import { retry } from '../../shared/lib/time/backoff.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { withAdmin } from './client.ts';
import { kafkaCall } from './errors.ts';
import { checkpointRecordKeys } from './checkpoints/recordValues.ts';
import type { CheckpointRecordReader } from './checkpoints/recordReader.ts';
import type { KafkaPublisherOptions } from './options.ts';
import {
  checkpointTopic,
  createTopics,
  describeTopics,
  listTopics,
  publicTopic,
  requireCheckpointTopic,
  type Topic,
  UNLIMITED_RETENTION,
} from './topics.ts';
import { describeLostMessages } from './checkpoints/writtenOffsets.ts';

const DAY_MS = 86_400_000;

const isLess = (found: number, wanted: number): boolean =>
  found !== UNLIMITED_RETENTION && (wanted === UNLIMITED_RETENTION || found < wanted);
const days = (ms: number): string =>
  ms === UNLIMITED_RETENTION ? 'for ever' : `for ${Math.round((ms / DAY_MS) * 10) / 10} days`;

/** Why a public topic does not keep what it is to keep; undefined where it does. */
function shortcoming(topic: Topic, retentionMs: number): string | undefined {
  const { cleanupPolicy } = topic;
  if (cleanupPolicy.includes('compact'))
    return 'keeps only the last event of each key (cleanup.policy=compact)';
  if (isLess(topic.retentionMs, retentionMs))
    return `keeps events ${days(topic.retentionMs)} (retention.ms=${topic.retentionMs})`;
  if (topic.retentionBytes !== UNLIMITED_RETENTION)
    return `keeps ${topic.retentionBytes} bytes of each partition (retention.bytes)`;
  return undefined;
}

/** Says, once for each finding, where a topic that an operator made keeps less than it should. */
function createRetentionWarnings({
  retentionMs,
  logger,
}: Pick<KafkaPublisherOptions, 'retentionMs' | 'logger'>): (name: string, topic: Topic) => void {
  const told = new Set<string>();
  return (name, topic) => {
    const found = shortcoming(topic, retentionMs);
    if (found === undefined || told.has(`${name} ${found}`)) return;
    told.add(`${name} ${found}`);
    logger.warn(
      { topic: name },
      `The topic ${name} ${found}; KAFKA_RETENTION wants them ${days(retentionMs)}`,
    );
  };
}

const CHECK_INTERVAL_MS = 1_000;
const CREATION_ATTEMPTS = 20;
const CREATION_PAUSES = { firstMs: 50, longestMs: 500 };

const unavailable = (message: string): TurnlogError =>
  new TurnlogError('publisher_unavailable', message, { retriable: true });

/** The topics of a publisher. All failures are those of `toPublisherError`. */
export function createOwnTopics(
  kafka: Kafka,
  options: KafkaPublisherOptions,
  notes: CheckpointRecordReader,
) {
  const { deadLetterTopic, checkpointTopic: checkpoints, transactionalId } = options;
  const keys = checkpointRecordKeys(transactionalId);
  const published = [...new Set(Object.values(options.topics))];
  const names = [
    ...published,
    ...(deadLetterTopic === undefined ? [] : [deadLetterTopic]),
    checkpoints,
  ];
  const warnOfRetention = createRetentionWarnings(options);
  /** Topics read by `lost`, for the take-over that follows. */
  let knownTopics: ReadonlyMap<string, Topic> | undefined;
  let checkedAt = 0;

  async function describeAll(): Promise<ReadonlyMap<string, Topic>> {
    const topics = await kafkaCall(() => withAdmin(kafka, (admin) => describeTopics(admin, names)));
    const own = topics.get(checkpoints);
    if (own) requireCheckpointTopic(checkpoints, own);
    return topics;
  }

  /** Brokers learn of a topic some time after it was created. */
  const untilCreated = (): Promise<ReadonlyMap<string, Topic>> =>
    retry(
      async () => {
        const topics = await describeAll();
        const absent = names.find((name) => !topics.has(name));
        if (absent === undefined) return topics;
        throw unavailable(`The topic ${absent} was created and is not there yet.`);
      },
      { pauses: CREATION_PAUSES, shouldRetry: (_error, failures) => failures < CREATION_ATTEMPTS },
    );

  return {
    /**
     * A sentence on published messages that are gone. Throws `configuration_invalid` when the checkpoint
     * topic can't keep checkpoints.
     */
    async lost(): Promise<string | undefined> {
      const topics = (knownTopics = await describeAll());
      const found = await kafkaCall(notes.readAll, { topic: checkpoints, transactionalId });
      const full = published.find((name) => topics.get(name)?.ends.some((end) => end > 0n));
      if (full !== undefined && !found.has(keys.checkpoint) && !found.has(keys.takenOver))
        return `The checkpoint topic ${checkpoints} ${topics.has(checkpoints) ? 'holds no checkpoint of this relay' : 'does not exist'}, although the topic ${full} holds messages.`;
      for (const name of published) {
        const sentence = describeLostMessages(found, keys.topic(name), {
          name,
          topic: topics.get(name),
        });
        if (sentence !== undefined) return sentence;
      }
      return undefined;
    },
    /** Creates those that do not exist; others are left as an operator made them. */
    async create(): Promise<ReadonlyMap<string, Topic>> {
      const existing = knownTopics ?? (await describeAll());
      knownTopics = undefined;
      const missing = names.filter((name) => !existing.has(name));
      const wanted = missing.map((name) =>
        name === checkpoints ? checkpointTopic(name) : publicTopic(name, options),
      );
      if (wanted.length > 0)
        await kafkaCall(() => withAdmin(kafka, (admin) => createTopics(admin, wanted)));
      const topics = wanted.length > 0 ? await untilCreated() : existing;
      for (const name of published) warnOfRetention(name, topics.get(name)!);
      checkedAt = performance.now();
      return topics;
    },
    /** Throws `publisher_unavailable` when a topic is gone; checks at most once a second. */
    async requireAll(): Promise<void> {
      if (performance.now() - checkedAt < CHECK_INTERVAL_MS) return;
      checkedAt = performance.now();
      const existing = new Set(await kafkaCall(() => withAdmin(kafka, listTopics)));
      const gone = names.find((name) => !existing.has(name));
      if (gone !== undefined) throw unavailable(`The topic ${gone} is gone.`);
    },
  };
}
