import { randomUUID } from 'node:crypto';
import type { KafkaPublisherOptions } from '../../../../infra/kafka/options.ts';
import { openKafkaPublisher } from '../../../../infra/kafka/publisher.ts';
import { startRelay, type RunningRelay } from '../../../../services/followers/relay/start.ts';
import type { Position } from '../../../../shared/ports/eventStore.ts';
import type { Publisher } from '../../../../shared/publicEvents/publisher.ts';
import type { FixedLog } from '../../fakes/fixedLog.ts';
import { recordingLogger } from '../../stores/projections/projector.ts';

/** Topics and a transactional id that no other test has. */
export const uniquePrefix = (): string => `t-${randomUUID().slice(0, 8)}`;

export const topicsOf = (prefix: string) => ({
  agents: `${prefix}.agents`,
  sessions: `${prefix}.sessions`,
});

export const publisherOptions = (brokers: string, prefix: string): KafkaPublisherOptions => ({
  brokers: brokers.split(','),
  topics: topicsOf(prefix),
  checkpointTopic: `${prefix}.checkpoints`,
  transactionalId: `${prefix}.relay`,
  deadLetterTopic: `${prefix}.dead-letter`,
  partitions: 3,
  retentionMs: -1,
  source: '/turnlog',
  logger: { debug: () => undefined, warn: () => undefined },
});

export interface TestRelay extends RunningRelay {
  lines: ReturnType<typeof recordingLogger>['lines'];
}

/** A relay of this process over a log. */
export function relayTo(
  publisher: Publisher,
  log: FixedLog,
  changes: { startAfter?: Position; startIsStated?: boolean; takeOverMs?: number } = {},
): TestRelay {
  const { lines, logger } = recordingLogger();
  const relay = startRelay({
    log,
    publisher,
    startAfter: changes.startAfter,
    startIsStated: changes.startIsStated ?? changes.startAfter !== undefined,
    takeOverMs: changes.takeOverMs ?? 500,
    clock: { now: () => Date.now() },
    logger,
  });
  return { ...relay, lines };
}

/** A relay to Kafka over a log. */
export const relayToKafka = (
  brokers: string,
  prefix: string,
  log: FixedLog,
  changes: Parameters<typeof relayTo>[2] = {},
): TestRelay => relayTo(openKafkaPublisher(publisherOptions(brokers, prefix)), log, changes);
