import { expect, test } from '@jest/globals';
import { createWrittenOffsets } from '../../../../../infra/kafka/checkpoints/writtenOffsets.ts';
import type { Topic } from '../../../../../infra/kafka/topics.ts';

const trackOffsets = (stored: string, ends: readonly bigint[]) =>
  createWrittenOffsets(new Map([['key', { value: stored, offset: '1' }]]), 'key', {
    name: 'agents',
    topic: { ends } as unknown as Topic,
  });

const written = (partition: number, baseOffset: string) => [
  { topicName: 'agents', partition, baseOffset, errorCode: 0 },
];

test('a topic that got more partitions is used with its original number', () => {
  const whole = trackOffsets('["6","2",null]', [7n, 3n, 0n, 0n]);
  expect(whole.partitions).toBe(3);
  expect(whole.note(written(1, '3'))?.message.value).toBe('["6","3",null]');
});

test('so is one that has lost its end; offsets that it may have again are not noted', () => {
  const behind = trackOffsets('["6","2",null]', [6n, 3n, 0n, 0n]);
  expect(behind.partitions).toBe(3);
  expect(behind.note(written(1, '3'))?.message.value).toBe('[null,"3",null]');
});
