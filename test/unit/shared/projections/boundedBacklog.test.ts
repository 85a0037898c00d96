import { expect, test } from '@jest/globals';
import { withBoundedBacklog } from '../../../../shared/projections/boundedBacklog.ts';
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

function boundedStore(append: EventStore['append']) {
  let requests = 0;
  let onProgress = (): void => undefined;
  const store = withBoundedBacklog(
    { append },
    {
      subscribe: (listener) => ((onProgress = listener as () => void), () => true),
      request: () => (requests += 1),
    },
  );
  return { store, requests: () => requests, progress: () => onProgress() };
}

test.each([true, false])('a batch is requested once many bytes have gathered', async (isClosed) => {
  const { store, requests, progress } = boundedStore(async () => ({
    revision: 0,
    position: positionOf(1),
  }));
  const append = (characters: number) => store.append(STREAM, 0, [eventOf(characters, isClosed)]);
  await append(100_000);
  await append(100_000);
  expect(requests()).toBe(0);
  await append(100_000);
  expect(requests()).toBe(1);
  progress();
  await append(200_000);
  expect(requests()).toBe(1);
  await append(200_000);
  expect(requests()).toBe(2);
});

test('what was not written does not count', async () => {
  const { store, requests } = boundedStore(async () => {
    throw new Error('away');
  });
  await expect(store.append(STREAM, 0, [eventOf(500_000, false)])).rejects.toThrow('away');
  expect(requests()).toBe(0);
});
