import { expect, test } from '@jest/globals';
import { withBoundedBacklog } from '../../../../shared/projections/boundedBacklog.ts';
import type { ProgressSource } from '../../../../shared/projections/progress.ts';
import type { EncodedEvent, EventStore } from '../../../../shared/ports/eventStore.ts';
import { positionOf } from '../../../support/builders/history.ts';

const STREAM = 'session-session_1';

/** An event whose text is as long as this, encrypted or in its data. */
function eventOf(characters: number, isClosed: boolean): EncodedEvent {
  const text = 'x'.repeat(characters);
  const event = { id: 'e', type: 'session.turn_started.v1', data: '{}', metadata: '{}' };
  if (!isClosed) return { ...event, data: JSON.stringify({ text }) };
  const texts = [{ name: 'input', sha256: '', salt: '', text }];
  return { ...event, toClose: { texts, key: { id: 'k'.repeat(16), secret: '' } } };
}

/** A store whose events have the positions 1, 2 and so on. */
function boundedStore({ isAway = false } = {}) {
  let [requests, appends] = [0, 0];
  let listener: Parameters<ProgressSource['subscribe']>[0] = () => undefined;
  const store = withBoundedBacklog(
    {
      append: async (..._append: Parameters<EventStore['append']>) => {
        if (isAway) throw new Error('away');
        return { revision: 0, position: positionOf((appends += 1)) };
      },
    },
    {
      subscribe: (added) => ((listener = added), () => true),
      request: () => (requests += 1),
    },
  );
  const progress = { caughtUp: true, percent: 100, keepsKnownRows: true, generation: 1 };
  return {
    store,
    requests: () => requests,
    show: (position: number) => listener({ ...progress, position: positionOf(position) }),
  };
}

test.each([true, false])('a batch is requested once much text has gathered', async (isClosed) => {
  const { store, requests } = boundedStore();
  const append = (characters: number) => store.append(STREAM, 0, [eventOf(characters, isClosed)]);
  await append(90_000);
  await append(90_000);
  expect(requests()).toBe(0);
  await append(90_000);
  expect(requests()).toBe(1);
  await append(90_000);
  await append(90_000);
  expect(requests()).toBe(1);
  await append(90_000);
  expect(requests()).toBe(2);
});

test('small appends are gathered by time only', async () => {
  const { store, requests } = boundedStore();
  for (let count = 0; count < 100; count += 1)
    await store.append(STREAM, 0, [eventOf(5_000, false)]);
  expect(requests()).toBe(0);
});

test('what was applied meanwhile does not count', async () => {
  const { store, requests, show } = boundedStore();
  for (let position = 1; position <= 10; position += 1) {
    await store.append(STREAM, 0, [eventOf(100_000, false)]);
    show(position);
  }
  expect(requests()).toBe(0);
});

test('it is requested again after a batch that was read before', async () => {
  const { store, requests, show } = boundedStore();
  await store.append(STREAM, 0, [eventOf(100, false)]);
  await store.append(STREAM, 0, [eventOf(300_000, false)]);
  show(1);
  expect(requests()).toBe(2);
  show(2);
  show(2);
  expect(requests()).toBe(2);
});

test('what was not written does not count', async () => {
  const { store, requests } = boundedStore({ isAway: true });
  await expect(store.append(STREAM, 0, [eventOf(500_000, false)])).rejects.toThrow('away');
  expect(requests()).toBe(0);
});
