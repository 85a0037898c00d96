import { expect, test } from '@jest/globals';
import {
  readCheckpointRecord,
  readOffsetsRecord,
  readParkedKeyRecord,
} from '../../../../../infra/kafka/checkpoints/recordValues.ts';
import { createDeadLetterQueue } from '../../../../../infra/kafka/deadLetters.ts';
import { openPublisher } from '../../../../../services/compose/features/publisher.ts';
import { parseConfig } from '../../../../../shared/lib/config/config.ts';
import { createLogger } from '../../../../../shared/lib/logger.ts';

const notes = (value: string) => new Map([['relay', { value, offset: '7' }]]);
const CHECKPOINT = { log_id: 'l', position: '1', event_id: 'e', event_hash: '' };
const PARKED = { topic: 't', key: 'k', event_id: 'e', position: '1', size: 5 };

test('notes are read as they were written, and none is none', () => {
  expect(readCheckpointRecord(notes(JSON.stringify(CHECKPOINT)), 'relay')).toEqual(CHECKPOINT);
  expect(readOffsetsRecord(notes('[null,"12"]'), 'relay')).toEqual([null, '12']);
  expect(readParkedKeyRecord(notes(JSON.stringify(PARKED)), 'relay')).toEqual(PARKED);
  expect(readCheckpointRecord(new Map(), 'relay')).toBeUndefined();
});

const RUBBISH = ['', '{', 'null', '"text"', '5', '[5]', '["x"]', '{"position":5}', 'x'.repeat(1e7)];

test.each(RUBBISH.map((value) => [value.slice(0, 20), value]))(
  'a note that no relay writes is refused with its place: %s',
  (_, value) => {
    const refused = expect.objectContaining({
      code: 'configuration_invalid',
      message: expect.stringContaining('under the key relay, at the offset 7'),
    });
    for (const read of [readCheckpointRecord, readOffsetsRecord, readParkedKeyRecord])
      expect(() => read(notes(value), 'relay')).toThrow(refused);
    expect(() => createDeadLetterQueue(notes(value), 'rel', true)).toThrow(refused);
  },
);

test.each([
  [{ KAFKA_DEAD_LETTER_TOPIC: 'turnlog.sessions.v1' }, 'KAFKA_DEAD_LETTER_TOPIC'],
  [{ KAFKA_CHECKPOINT_TOPIC: 'turnlog.agents.v1' }, 'KAFKA_CHECKPOINT_TOPIC'],
  [{ KAFKA_CHECKPOINT_TOPIC: 'turnlog.dead-letter' }, 'KAFKA_CHECKPOINT_TOPIC'],
])('topics that must not be the same are refused: %j', async (names, named) => {
  const config = parseConfig({ KAFKA_BROKERS: '127.0.0.1:9', ...names });
  await expect(openPublisher(config, createLogger('silent'))).rejects.toMatchObject({
    code: 'configuration_invalid',
    message: expect.stringContaining(named),
  });
});
