import { describe, expect, test } from '@jest/globals';
import { withCheckedPages } from '../../../../../shared/eventlog/reading/checkedPages.ts';
import type { EventLog, ReadOptions, StoredEvent } from '../../../../../shared/ports/eventStore.ts';

const STREAM = 'session-1';
const FORWARDS = { direction: 'forwards', limit: 10 } as const;
const BACKWARDS = { direction: 'backwards', limit: 10 } as const;

/** Reads from a server that answers with these revisions, whatever was asked for. */
const read = (revisions: readonly number[], options: ReadOptions, stream = STREAM) => {
  const events = revisions.map((revision) => ({ stream, revision }) as StoredEvent);
  const readStream = async (): Promise<StoredEvent[]> => events;
  return withCheckedPages<Pick<EventLog, 'readStream'>>({ readStream }).readStream(STREAM, options);
};

test('events of another stream are damage', async () => {
  await expect(read([0, 1], FORWARDS, 'session-2')).rejects.toMatchObject({
    code: 'stream_damaged',
    message:
      'The stream session-1 is damaged: the event store answered with events of another stream.',
  });
});

describe('a page is read', () => {
  test.each([
    ['from the beginning', [0, 1, 2], FORWARDS],
    ['after hidden events', [5, 6], FORWARDS],
    ['from a revision', [3, 4], { ...FORWARDS, from: 3 }],
    ['with a gap', [3, 7], { ...FORWARDS, from: 2 }],
    ['from the end', [9, 8], BACKWARDS],
    ['back to the first revision', [1, 0], { ...BACKWARDS, from: 1 }],
    ['from before a revision that does not exist', [3, 2], { ...BACKWARDS, from: 8 }],
    ['without events', [], FORWARDS],
  ])('%s', async (_what, revisions, options) => {
    expect(await read(revisions, options)).toHaveLength(revisions.length);
  });
});

describe('a page is damage', () => {
  test.each([
    ['that was read before', [0, 1], { ...FORWARDS, from: 2 }],
    ['that was read before, backwards', [9, 8], { ...BACKWARDS, from: 7 }],
    ['with an event twice', [0, 1, 1], FORWARDS],
    ['with an event twice, backwards', [2, 2], BACKWARDS],
    ['in the other direction', [2, 1], FORWARDS],
    ['in the other direction, backwards', [1, 2], BACKWARDS],
    ['with a revision that no number can follow', [2 ** 53], FORWARDS],
  ])('%s', async (_what, revisions, options) => {
    await expect(read(revisions, options)).rejects.toMatchObject({
      code: 'stream_damaged',
      message: expect.stringContaining('out of order'),
    });
  });
});
