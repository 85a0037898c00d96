import type { Kafka } from 'kafkajs';
import { backoffMs, retry } from '../../shared/lib/time/backoff.ts';
import { sleep } from '../../shared/lib/time/sleep.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { withAdmin } from './client.ts';
import { kafkaCall } from './errors.ts';
import { checkpointRecordKeys } from './checkpoints/recordValues.ts';
import type { CheckpointRecordReader, CheckpointRecords } from './checkpoints/recordReader.ts';
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

const isLess = (actual: number, required: number): boolean =>
  actual !== UNLIMITED_RETENTION && (required === UNLIMITED_RETENTION || actual < required);
const days = (ms: number): string =>
  ms === UNLIMITED_RETENTION ? 'indefinitely' : `for ${Math.round((ms / DAY_MS) * 10) / 10} days`;

/** Why a public topic keeps less than required, as a clause; undefined if it does not. */
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

/**
 * Creates a function that logs, once per finding, that a topic made by an operator keeps less than
 * required.
 */
function createRetentionWarnings({
  retentionMs,
  logger,
}: Pick<KafkaPublisherOptions, 'retentionMs' | 'logger'>): (name: string, topic: Topic) => void {
  const loggedFindings = new Set<string>();
  return (name, topic) => {
    const finding = shortcoming(topic, retentionMs);
    if (finding === undefined || loggedFindings.has(`${name} ${finding}`)) return;
    loggedFindings.add(`${name} ${finding}`);
    logger.warn(
      { topic: name },
      `The topic ${name} ${finding}; KAFKA_RETENTION wants them ${days(retentionMs)}`,
    );
  };
}

const CHECK_INTERVAL_MS = 1_000;
const CREATION_ATTEMPTS = 20;
const CREATION_PAUSES = { firstMs: 50, longestMs: 500 };

/** A commit may be visible in the checkpoint topic some milliseconds before it is in public topics. */
const LOSS_CHECKS = 4;
const LOSS_PAUSES = { firstMs: 50, longestMs: 200 };

const unavailable = (message: string): TurnlogError =>
  new TurnlogError('publisher_unavailable', message, { retriable: true });

/** Manages the topics of a publisher. The methods throw the errors of `toPublisherError`. */
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
  /** The topics as read by `lost`, for the take-over that follows. */
  let knownTopics: ReadonlyMap<string, Topic> | undefined;
  let checkedAt = 0;

  async function describeAll(): Promise<ReadonlyMap<string, Topic>> {
    const topics = await kafkaCall(() => withAdmin(kafka, (admin) => describeTopics(admin, names)));
    const topic = topics.get(checkpoints);
    if (topic) requireCheckpointTopic(checkpoints, topic);
    return topics;
  }

  /** Brokers know a new topic only some time after its creation. */
  const waitUntilCreated = (): Promise<ReadonlyMap<string, Topic>> =>
    retry(
      async () => {
        const topics = await describeAll();
        const missingTopic = names.find((name) => !topics.has(name));
        if (missingTopic === undefined) return topics;
        throw unavailable(`The topic ${missingTopic} was created and is not there yet.`);
      },
      { pauses: CREATION_PAUSES, shouldRetry: (_error, failures) => failures < CREATION_ATTEMPTS },
    );

  const describeLoss = (
    topics: ReadonlyMap<string, Topic>,
    records: CheckpointRecords,
  ): string | undefined =>
    published
      .map((name) =>
        describeLostMessages(records, keys.topic(name), { name, topic: topics.get(name) }),
      )
      .find((sentence) => sentence !== undefined);

  /**
   * Describes the topics again, several times at most, while they seem to lack messages of the records:
   * a relay may have published after the topics were described.
   */
  async function describeUntilWhole(
    described: ReadonlyMap<string, Topic>,
    records: CheckpointRecords,
  ): Promise<ReadonlyMap<string, Topic>> {
    let topics = described;
    for (let checks = 1; checks < LOSS_CHECKS && describeLoss(topics, records); checks += 1) {
      await sleep(backoffMs(LOSS_PAUSES, checks - 1));
      topics = await describeAll();
    }
    return topics;
  }

  function requireExisting(existing: Pick<ReadonlySet<string>, 'has'>): void {
    const goneTopic = names.find((name) => !existing.has(name));
    if (goneTopic !== undefined) throw unavailable(`The topic ${goneTopic} is gone.`);
  }

  return {
    /**
     * A sentence about published messages that are gone. Throws `configuration_invalid` when the
     * checkpoint topic can't keep checkpoints.
     */
    async lost(): Promise<string | undefined> {
      const topics = (knownTopics = await describeAll());
      const records = await kafkaCall(notes.readAll, { topic: checkpoints, transactionalId });
      const nonEmptyTopic = published.find((name) =>
        topics.get(name)?.ends.some((end) => end > 0n),
      );
      if (
        nonEmptyTopic !== undefined &&
        !records.has(keys.checkpoint) &&
        !records.has(keys.takenOver)
      )
        return `The checkpoint topic ${checkpoints} ${topics.has(checkpoints) ? 'holds no checkpoint of this relay' : 'does not exist'}, although the topic ${nonEmptyTopic} holds messages.`;
      // The topics are described again instead of after the records, because the check above needs
      // this order.
      knownTopics = await describeUntilWhole(topics, records);
      return describeLoss(knownTopics, records);
    },
    /** Creates missing topics. Existing ones are left as the operator made them. */
    async create(): Promise<ReadonlyMap<string, Topic>> {
      const existing = knownTopics ?? (await describeAll());
      knownTopics = undefined;
      const missing = names.filter((name) => !existing.has(name));
      const configs = missing.map((name) =>
        name === checkpoints ? checkpointTopic(name) : publicTopic(name, options),
      );
      if (configs.length > 0)
        await kafkaCall(() => withAdmin(kafka, (admin) => createTopics(admin, configs)));
      const topics = configs.length > 0 ? await waitUntilCreated() : existing;
      for (const name of published) warnOfRetention(name, topics.get(name)!);
      checkedAt = performance.now();
      return topics;
    },
    /**
     * The topics after a take-over, which fences the previous relay: with all messages of the records,
     * unless they were lost. Throws `publisher_unavailable` when a topic is gone.
     */
    async refresh(
      described: ReadonlyMap<string, Topic>,
      records: CheckpointRecords,
    ): Promise<ReadonlyMap<string, Topic>> {
      const topics = await describeUntilWhole(described, records);
      requireExisting(topics);
      return topics;
    },
    /** Throws `publisher_unavailable` when a topic is gone. Checks at most once a second. */
    async requireAll(): Promise<void> {
      if (performance.now() - checkedAt < CHECK_INTERVAL_MS) return;
      checkedAt = performance.now();
      requireExisting(new Set(await kafkaCall(() => withAdmin(kafka, listTopics))));
    },
  };
}
