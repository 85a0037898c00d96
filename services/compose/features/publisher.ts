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

/** The retention in milliseconds, or -1 for no limit. */
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

/** The Kafka client is loaded only if brokers are configured. */
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
 * The topics of dead letters and checkpoints must not be shared: consumers would receive records that
 * are not events, and compaction of the checkpoint topic would delete events.
 */
function requireDistinctTopics({
  KAFKA_AGENTS_TOPIC: agents,
  KAFKA_SESSIONS_TOPIC: sessions,
  KAFKA_DEAD_LETTER_TOPIC: dead,
  KAFKA_CHECKPOINT_TOPIC: checkpoint,
}: Config): void {
  const shared = [
    ...([agents, sessions].includes(dead) ? ['KAFKA_DEAD_LETTER_TOPIC'] : []),
    ...([agents, sessions, dead].includes(checkpoint) ? ['KAFKA_CHECKPOINT_TOPIC'] : []),
  ];
  if (shared.length > 0)
    throw new TurnlogError(
      'configuration_invalid',
      `${shared.join(' and ')} must not name a topic that the relay uses for something else.`,
    );
}

/** Opens the publisher of the live topics. */
export async function openPublisher(config: Config, logger: Logger): Promise<Publisher> {
  requireDistinctTopics(config);
  return openKafka(config, logger, {
    topics: { agents: config.KAFKA_AGENTS_TOPIC, sessions: config.KAFKA_SESSIONS_TOPIC },
    deadLetterTopic: config.KAFKA_DEAD_LETTER_TOPIC,
    checkpointTopic: config.KAFKA_CHECKPOINT_TOPIC,
    transactionalId: config.KAFKA_TRANSACTIONAL_ID,
  });
}

/** Opens a publisher to one topic, with a separate checkpoint: it does not affect the live topics. */
export const openReplayPublisher = (
  config: Config,
  logger: Logger,
  topic: string,
  only: Channel | undefined,
): Promise<Publisher> =>
  openKafka(config, logger, {
    topics: { agents: topic, sessions: topic },
    // A replay must not skip events: it fails instead of parking one.
    deadLetterTopic: undefined,
    checkpointTopic: `${topic}.checkpoint`,
    // A replay of one channel can't continue as one of both, so each has its own checkpoint.
    transactionalId: [config.KAFKA_TRANSACTIONAL_ID, 'replay', topic, ...(only ? [only] : [])].join(
      '.',
    ),
  });
