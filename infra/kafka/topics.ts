import type { Admin, ITopicConfig } from 'kafkajs';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { kafkaCall } from './errors.ts';
import { retryRequest } from './retryRequest.ts';

/** The largest event is just under 1 MiB; its message has headers as well. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;
/**
 * Small segments, because only closed ones are compacted and every start reads all that is left.
 */
const CHECKPOINT_SEGMENT_BYTES = 1024 * 1024;
/** The cluster's own default. */
const REPLICATION = -1;
/** Of a retention. */
export const UNLIMITED_RETENTION = -1;

/** A topic that exists. */
export interface Topic {
  /** The end offset of each partition, which grows with every write, aborted ones included. */
  ends: bigint[];
  maxMessageBytes: number;
  /** -1: kept for ever. */
  retentionMs: number;
  retentionBytes: number;
  cleanupPolicy: string;
}

/** Whether the brokers keep only the last message of a key, and none behind a tombstone. */
export const isCompacted = ({ cleanupPolicy }: Pick<Topic, 'cleanupPolicy'>): boolean =>
  cleanupPolicy.split(',').includes('compact');

const entries = (values: Record<string, string | number>) =>
  Object.entries(values).map(([name, value]) => ({ name, value: String(value) }));

/** A topic that consumers read, to be created. */
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

/** The topic of the notes, to be created. */
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

/** The library's name for it is not among what an ES module can import. */
const TOPIC_RESOURCE = 2;

const CONFIGS = ['max.message.bytes', 'retention.ms', 'retention.bytes', 'cleanup.policy'] as const;

/** The names of all topics that exist and may be seen. */
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
  const found = new Map(
    resources[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue]),
  );
  const valueOf = (config: (typeof CONFIGS)[number]): string => found.get(config) ?? '';
  return {
    ends: await endOffsetsOf(admin, name),
    maxMessageBytes: Number(valueOf('max.message.bytes')),
    retentionMs: Number(valueOf('retention.ms')),
    retentionBytes: Number(valueOf('retention.bytes')),
    cleanupPolicy: valueOf('cleanup.policy'),
  };
}

/** Those of the topics that exist. Errors: those of asPublisherError. */
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

/** Creates topics; one that exists by now is left. Errors: those of asPublisherError. */
export async function createTopics(admin: Admin, wanted: readonly ITopicConfig[]): Promise<void> {
  for (const topic of wanted)
    await kafkaCall(
      () => retryRequest(() => admin.createTopics({ topics: [topic], waitForLeaders: true })),
      { topic: topic.topic },
    );
}

/**
 * Errors: `configuration_invalid` when a topic can't keep checkpoints: in several partitions they
 * have no order, and with another policy the last one may be deleted.
 */
export function requireCheckpointTopic(name: string, { ends, cleanupPolicy }: Topic): void {
  const found = [
    ...(ends.length === 1 ? [] : [`${ends.length} partitions`]),
    ...(cleanupPolicy === 'compact' ? [] : [`cleanup.policy=${cleanupPolicy}`]),
  ];
  if (found.length > 0)
    throw new TurnlogError(
      'configuration_invalid',
      `The checkpoint topic ${name} has ${found.join(' and ')}; it needs one partition and cleanup.policy=compact. Change the policy (kafka-configs.sh --alter --add-config cleanup.policy=compact), or set KAFKA_CHECKPOINT_TOPIC to a new name and KAFKA_START_AFTER to the position to begin after.`,
    );
}

/** The end of a topic of one partition; 0 where there is none. */
export async function endOffsetOf(admin: Admin, topic: string): Promise<bigint> {
  if (!(await listTopics(admin)).includes(topic)) return 0n;
  return (await endOffsetsOf(admin, topic)).reduce((total, end) => total + end, 0n);
}
