import type { RecordMetadata } from 'kafkajs';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { CheckpointRecords } from './recordReader.ts';
import { readOffsetsRecord, type Offsets } from './recordValues.ts';
import type { TextMessage } from '../batching.ts';
import type { Topic } from '../topics.ts';

const isBehind = (offsets: Offsets, { ends }: Topic): boolean =>
  offsets.some((offset, partition) => offset !== null && BigInt(offset) >= (ends[partition] ?? 0n));

/** A sentence on a topic that lacks what was written to it; undefined when nothing is missing. */
export function describeLostMessages(
  notes: CheckpointRecords,
  key: string,
  { name, topic }: { name: string; topic: Topic | undefined },
): string | undefined {
  const offsets = readOffsetsRecord(notes, key);
  if (!offsets) return undefined;
  if (!topic) return `The topic ${name}, to which events were published, is gone.`;
  if (!isBehind(offsets, topic)) return undefined;
  return `The topic ${name} lacks events that were published to it: it was deleted and made again, or has lost its end.`;
}

/**
 * What a publisher knows of where its messages to a topic went. A topic that got partitions while
 * it was in use goes on with those it began with, because a key would go on in another one.
 */
export function createWrittenOffsets(
  notes: CheckpointRecords,
  key: string,
  { name, topic }: { name: string; topic: Topic },
) {
  const known = readOffsetsRecord(notes, key);
  const isWhole = known !== undefined && !isBehind(known, topic);
  let offsets: Offsets = isWhole ? known : topic.ends.map(() => null);

  return {
    partitions: offsets.length,
    /**
     * The note on what was written now, if anything was, and a way to remember it. Errors:
     * `publisher_unavailable` when the topic was made again since.
     */
    note(
      written: readonly RecordMetadata[],
    ): { message: TextMessage; committed: () => void } | undefined {
      const next = [...offsets];
      let changed = false;
      for (const { topicName, partition, baseOffset } of written) {
        if (topicName !== name || baseOffset === undefined || BigInt(baseOffset) < 0n) continue;
        const last = next[partition];
        if (typeof last === 'string' && BigInt(baseOffset) <= BigInt(last))
          throw new TurnlogError(
            'publisher_unavailable',
            `The topic ${name} was deleted and made again.`,
            { retriable: true },
          );
        next[partition] = baseOffset;
        changed = true;
      }
      if (!changed) return undefined;
      return {
        message: { key, value: JSON.stringify(next) },
        committed: () => void (offsets = next),
      };
    },
  };
}
