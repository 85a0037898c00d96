import type { Admin, ITopicConfig } from 'kafkajs';

/** The largest event is just under 1 MiB; its message has headers as well. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;
/**
 * Small segments, because only closed ones are compacted and every take-over reads all that is
 * left.
 */
const CHECKPOINT_SEGMENT_BYTES = 1024 * 1024;
/** The cluster's own default. */
const REPLICATION = -1;

const entries = (values: Record<string, string | number>) =>
  Object.entries(values).map(([name, value]) => ({ name, value: String(value) }));

const publicTopic = (topic: string, partitions: number): ITopicConfig => ({
  topic,
  numPartitions: partitions,
  replicationFactor: REPLICATION,
  configEntries: entries({ 'max.message.bytes': MAX_MESSAGE_BYTES }),
});

const checkpointTopic = (topic: string): ITopicConfig => ({
  topic,
  numPartitions: 1,
  replicationFactor: REPLICATION,
  configEntries: entries({
    'cleanup.policy': 'compact',
    'segment.bytes': CHECKPOINT_SEGMENT_BYTES,
    'min.cleanable.dirty.ratio': 0.1,
  }),
});

/** Creates the topics that do not exist. Others are left as an operator made them. */
export async function ensureTopics(
  admin: Admin,
  topics: { published: readonly string[]; checkpoints: string; partitions: number },
): Promise<void> {
  const existing = new Set(await admin.listTopics());
  const wanted = [
    ...topics.published.map((topic) => publicTopic(topic, topics.partitions)),
    checkpointTopic(topics.checkpoints),
  ];
  const missing = wanted.filter(({ topic }) => !existing.has(topic));
  if (missing.length > 0) await admin.createTopics({ topics: missing, waitForLeaders: true });
}

/** The sum of a topic's end offsets, which grows with every write; 0 where there is no topic. */
export async function endOf(admin: Admin, topic: string): Promise<bigint> {
  if (!(await admin.listTopics()).includes(topic)) return 0n;
  const offsets = await admin.fetchTopicOffsets(topic);
  return offsets.reduce((total, { high }) => total + BigInt(high), 0n);
}
