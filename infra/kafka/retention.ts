import type { KafkaPublisherOptions } from './options.ts';
import { UNLIMITED_RETENTION, type Topic } from './topics.ts';

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
export function createRetentionWarnings({
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
