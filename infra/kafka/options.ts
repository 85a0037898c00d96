import type { Channel } from '../../shared/publicEvents/schema.ts';
import type { KafkaLogger, KafkaSecurity } from './client.ts';

/** Of a publisher to Kafka. */
export interface KafkaPublisherOptions {
  brokers: readonly string[];
  security?: KafkaSecurity | undefined;
  /** Where the events of each channel go; a channel may share its topic with another. */
  topics: Readonly<Record<Channel, string>>;
  /** Where those go that are larger than their topic takes; without it they are refused. */
  deadLetterTopic: string | undefined;
  /** For this publisher alone: one partition, compacted. */
  checkpointTopic: string;
  /** Publishers with the same id take over from each other. Also the key of the checkpoint. */
  transactionalId: string;
  /** Of topics that have to be created. */
  partitions: number;
  /** How long public topics are to keep messages, in milliseconds; -1: for ever. */
  retentionMs: number;
  /** `ce_source`. */
  source: string;
  logger: KafkaLogger;
}
