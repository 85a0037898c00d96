import type { Admin, ITopicConfig } from 'kafkajs';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { kafkaCall } from './errors.ts';
import { retryRequest } from './retryRequest.ts';

/** The largest event is just under 1 MiB; its message has headers as well. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;
/** Segments are small, because only closed ones are compacted and every start reads the rest. */
const CHECKPOINT_SEGMENT_BYTES = 1024 * 1024;
/** Selects the cluster's default. */
const REPLICATION = -1;
/** The value of `retention.ms` and `retention.bytes` for no limit. */
export const UNLIMITED_RETENTION = -1;

/** An existing topic. */
export interface Topic {
  /** The end offset of each partition. It grows with every write, including aborted ones. */
  ends: bigint[];
  maxMessageBytes: number;
  /** -1: unlimited. */
  retentionMs: number;
  retentionBytes: number;
  cleanupPolicy: string;
}

/** Whether the brokers keep only the last message of a key, and none after a tombstone. */
export const isCompacted = ({ cleanupPolicy }: Pick<Topic, 'cleanupPolicy'>): boolean =>
  cleanupPolicy.split(',').includes('compact');

const entries = (values: Record<string, string | number>) =>
  Object.entries(values).map(([name, value]) => ({ name, value: String(value) }));

/** The configuration of a topic that consumers read, for its creation. */
export const publicTopic = (
  topic: string,
  { partitions, retentionMs }: { partitions: number; retentionMs: number },
): ITopicConfig => ({
  topic,
  numPartitions: partitions,
  replicationFactor: REPLICATION,
  configEntries: entries({
    'max.message.bytes': MAX_MESSAGE_BYTES,
    'retention.ms': retentionMs,
    'retention.bytes': UNLIMITED_RETENTION,
  }),
});

/** The configuration of the checkpoint topic, for its creation. */
export const checkpointTopic = (topic: string): ITopicConfig => ({
  topic,
  numPartitions: 1,
  replicationFactor: REPLICATION,
  configEntries: entries({
    'cleanup.policy': 'compact',
    'segment.bytes': CHECKPOINT_SEGMENT_BYTES,
    'min.cleanable.dirty.ratio': 0.1,
  }),
});

/** An ES module can't import the library's constant for it. */
const TOPIC_RESOURCE = 2;

const CONFIGS = ['max.message.bytes', 'retention.ms', 'retention.bytes', 'cleanup.policy'] as const;

/** The names of all topics that exist and are visible to the client. */
export const listTopics = (admin: Admin): Promise<string[]> =>
  retryRequest(() => admin.listTopics());

async function endOffsetsOf(admin: Admin, topic: string): Promise<bigint[]> {
  const offsets = await retryRequest(() => admin.fetchTopicOffsets(topic));
  return offsets.toSorted((a, b) => a.partition - b.partition).map(({ high }) => BigInt(high));
}

async function describe(admin: Admin, name: string): Promise<Topic> {
  const { resources } = await retryRequest(() =>
    admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: TOPIC_RESOURCE, name, configNames: [...CONFIGS] }],
    }),
  );
  const values = new Map(
    resources[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue]),
  );
  const valueOf = (config: (typeof CONFIGS)[number]): string => values.get(config) ?? '';
  return {
    ends: await endOffsetsOf(admin, name),
    maxMessageBytes: Number(valueOf('max.message.bytes')),
    retentionMs: Number(valueOf('retention.ms')),
    retentionBytes: Number(valueOf('retention.bytes')),
    cleanupPolicy: valueOf('cleanup.policy'),
  };
}

/** Describes the topics that exist. Throws the errors of toPublisherError. */
export async function describeTopics(
  admin: Admin,
  names: readonly string[],
): Promise<Map<string, Topic>> {
  const existing = new Set(await kafkaCall(() => listTopics(admin)));
  const topics = new Map<string, Topic>();
  for (const name of names)
    if (existing.has(name))
      topics.set(name, await kafkaCall(() => describe(admin, name), { topic: name }));
  return topics;
}

/** Creates topics, and leaves existing ones unchanged. Throws the errors of toPublisherError. */
export async function createTopics(admin: Admin, configs: readonly ITopicConfig[]): Promise<void> {
  for (const topic of configs)
    await kafkaCall(
      () => retryRequest(() => admin.createTopics({ topics: [topic], waitForLeaders: true })),
      { topic: topic.topic },
    );
}

/**
 * Throws `configuration_invalid` when a topic can't keep checkpoints: several partitions have no
 * common order, and another policy may delete the last one.
 */
export function requireCheckpointTopic(name: string, { ends, cleanupPolicy }: Topic): void {
  const deviations = [
    ...(ends.length === 1 ? [] : [`${ends.length} partitions`]),
    ...(cleanupPolicy === 'compact' ? [] : [`cleanup.policy=${cleanupPolicy}`]),
  ];
  if (deviations.length > 0)
    throw new TurnlogError(
      'configuration_invalid',
      `The checkpoint topic ${name} has ${deviations.join(' and ')}; it needs one partition and cleanup.policy=compact. Change the policy (kafka-configs.sh --alter --add-config cleanup.policy=compact), or set KAFKA_CHECKPOINT_TOPIC to a new name and KAFKA_START_AFTER to the position to begin after.`,
    );
}

/** The end offset of a topic, summed over its partitions; 0 if the topic does not exist. */
export async function endOffsetOf(admin: Admin, topic: string): Promise<bigint> {
  if (!(await listTopics(admin)).includes(topic)) return 0n;
  return (await endOffsetsOf(admin, topic)).reduce((total, end) => total + end, 0n);
}
