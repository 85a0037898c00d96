import { expect, test } from '@jest/globals';
import {
  withLeaves,
  withTextsForRows,
} from '../../../../../shared/eventlog/encryption/protectedStore.ts';
import type {
  EventBatch,
  StoredEvent,
  SubscribeOptions,
} from '../../../../../shared/ports/eventStore.ts';
import { sessionErased, sessionStarted } from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';

test('the last events of streams are known at the end of the log, also those of earlier batches', async () => {
  const { record } = recordHistory();
  const started = (id: string): StoredEvent =>
    record({ stream: `session-${id}` }, sessionStarted());
  const [kept, erased] = [started('kept'), started('erased')];
  const erasure = record({ stream: 'session-erased' }, sessionErased());
  const batches: [StoredEvent[], boolean][] = [
    [[kept, erased], false],
    [[erasure], false],
    [[started('new')], true],
  ];
  const noted: string[] = [];
  const notedAfter: number[] = [];
  const log = {
    readStream: async () => [erasure],
    async *subscribe(_options: SubscribeOptions) {
      for (const [events, caughtUp] of batches)
        yield { events, position: undefined, checkpoint: undefined, caughtUp } as EventBatch;
    },
  };
  const keys = {
    find: () => new Map(),
    isErased: () => false,
    evict: (stream: string) => void noted.push(`${stream} erased`),
    noteLastEvent: (stream: string) => void noted.push(stream),
  };
  const { signal } = new AbortController();
  for await (const _ of withTextsForRows(log, keys).subscribe({ batchSize: 2, signal }))
    notedAfter.push(noted.length);
  expect(notedAfter).toEqual([0, 1, 3]);
  expect(noted).toEqual(['session-erased erased', 'session-kept', 'session-new']);
});

test('whether a stream is erased is known from the appends to it', async () => {
  const noted: string[][] = [];
  const store = withLeaves(
    {
      append: async () => ({ revision: 1, position: '7' }),
      keys: { noteLastEvent: (...noting: string[]) => void noted.push(noting) },
    } as never,
    { appended: () => undefined } as never,
  );
  const event = { id: '', data: '', metadata: '' };
  const types = ['session.turn_started.v1', 'session.turn_completed.v1'];
  await store.append(
    'session-a',
    0,
    types.map((type) => ({ ...event, type })),
  );
  expect(noted).toEqual([['session-a', 'session.turn_completed.v1']]);
});
