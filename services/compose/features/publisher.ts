import type { KafkaPublisherOptions } from '../../../infra/kafka/options.ts';
import type { Config } from '../../../shared/lib/config/config.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { Channel } from '../../../shared/publicEvents/schema.ts';
import type { Publisher } from '../../../shared/publicEvents/publisher.ts';

type Target = Pick<
  KafkaPublisherOptions,
  'topics' | 'deadLetterTopic' | 'checkpointTopic' | 'transactionalId'
>;

const HOUR_MS = 3_600_000;

/** In milliseconds; -1: for ever. */
function parseRetentionMs({ KAFKA_RETENTION: retention }: Config): number {
  if (retention === 'forever') return -1;
  return Number.parseInt(retention, 10) * HOUR_MS * (retention.endsWith('d') ? 24 : 1);
}

function securityOptions({
  KAFKA_TLS: tls,
  KAFKA_SASL_MECHANISM: mechanism,
  KAFKA_USERNAME: username,
  KAFKA_PASSWORD: password,
}: Config): KafkaPublisherOptions['security'] {
  return username === undefined || password === undefined
    ? { tls }
    : { tls, user: { mechanism, username, password } };
}

/** The client of Kafka is loaded only where brokers are configured. */
async function openKafka(config: Config, logger: Logger, target: Target): Promise<Publisher> {
  if (config.KAFKA_BROKERS === undefined)
    throw new TurnlogError('configuration_invalid', 'KAFKA_BROKERS is not set.');
  const { openKafkaPublisher } = await import('../../../infra/kafka/publisher.ts');
  const brokers = config.KAFKA_BROKERS.split(',');
  return openKafkaPublisher({
    ...target,
    brokers,
    security: securityOptions(config),
    partitions: config.KAFKA_PARTITIONS,
    retentionMs: parseRetentionMs(config),
    source: config.KAFKA_EVENT_SOURCE,
    logger,
  });
}

/**
 * Consumers of events would get what is none, and a compacted topic would lose them. Errors:
 * `configuration_invalid`.
 */
function requireDistinctTopics({
  KAFKA_AGENTS_TOPIC: agents,
  KAFKA_SESSIONS_TOPIC: sessions,
  KAFKA_DEAD_LETTER_TOPIC: dead,
  KAFKA_CHECKPOINT_TOPIC: checkpoint,
}: Config): void {
  const used = [
    ...([agents, sessions].includes(dead) ? ['KAFKA_DEAD_LETTER_TOPIC'] : []),
    ...([agents, sessions, dead].includes(checkpoint) ? ['KAFKA_CHECKPOINT_TOPIC'] : []),
  ];
  if (used.length > 0)
    throw new TurnlogError(
      'configuration_invalid',
      `${used.join(' and ')} must not name a topic that the relay uses for something else.`,
    );
}

/**
 * The publisher of the live topics. Errors: `configuration_invalid` without KAFKA_BROKERS, or when
 * topics have the same name that must not.
 */
export async function openPublisher(config: Config, logger: Logger): Promise<Publisher> {
  requireDistinctTopics(config);
  return openKafka(config, logger, {
    topics: { agents: config.KAFKA_AGENTS_TOPIC, sessions: config.KAFKA_SESSIONS_TOPIC },
    deadLetterTopic: config.KAFKA_DEAD_LETTER_TOPIC,
    checkpointTopic: config.KAFKA_CHECKPOINT_TOPIC,
    transactionalId: config.KAFKA_TRANSACTIONAL_ID,
  });
}

/**
 * A publisher of everything to one topic, with a checkpoint of its own, so that it neither disturbs
 * the live topics nor is disturbed by what goes there. Errors: `configuration_invalid` without
 * KAFKA_BROKERS.
 */
export const openReplayPublisher = (
  config: Config,
  logger: Logger,
  topic: string,
  only: Channel | undefined,
): Promise<Publisher> =>
  openKafka(config, logger, {
    topics: { agents: topic, sessions: topic },
    // An event that is not in it would be missed: a replay rather ends with a sentence.
    deadLetterTopic: undefined,
    checkpointTopic: `${topic}.checkpoint`,
    // A replay of one channel can't be gone on with as one of both: it has a checkpoint of its own.
    transactionalId: [config.KAFKA_TRANSACTIONAL_ID, 'replay', topic, ...(only ? [only] : [])].join(
      '.',
    ),
  });
