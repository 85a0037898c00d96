import type { Channel } from '../../shared/publicEvents/schema.ts';
import type { KafkaLogger, KafkaSecurity } from './client.ts';

/** The options of a Kafka publisher. */
export interface KafkaPublisherOptions {
  brokers: readonly string[];
  security?: KafkaSecurity | undefined;
  /** The topic of each channel's events. Channels may share a topic. */
  topics: Readonly<Record<Channel, string>>;
  /** The topic for events that exceed their topic's size limit. Without it they are refused. */
  deadLetterTopic: string | undefined;
  /** Used by this publisher only. It has one partition and is compacted. */
  checkpointTopic: string;
  /** Publishers with the same id take over from each other. Also the key of the checkpoint. */
  transactionalId: string;
  /** The number of partitions of topics that have to be created. */
  partitions: number;
  /** The retention time of public topics, in milliseconds; -1 is unlimited. */
  retentionMs: number;
  /** The value of `ce_source`. */
  source: string;
  logger: KafkaLogger;
}
