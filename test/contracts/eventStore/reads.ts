import { beforeAll, describe, expect, test } from '@jest/globals';
import { bytesOf, type EncodedEvent } from '../../../shared/ports/eventStore.ts';
import {
  expectStrictlyAscending,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  readAll,
  type Opened,
} from './support.ts';

const TEXTS: Record<string, unknown> = {
  'an empty text': '',
  'emoji and flags': '👩‍👩‍👧‍👦 🏳️‍🌈 🇪🇺',
  'combining characters, not normalised': 'e\u0301 é \u1112\u1161\u11ab',
  'quotes, backslashes and SQL': `"'\\'"; DROP TABLE events; --`,
  'control characters and line ends': '\u0000\u001f\r\n\u2028\u2029\t',
  'a lone surrogate, escaped': '\ud800',
  'right-to-left text and the last code point': '\u202eمرحبا \u{10ffff}',
  'half a megabyte': 'ü€🙂x'.repeat(50_000),
};

export function readContract(opened: Opened): void {
  describe('readStream', () => {
    const stream = newStream();
    const events = newEvents(10);
    const ids = idsOf(events);

    beforeAll(async () => {
      await opened().store().append(newStream(), 'no_stream', newEvents(3));
      await opened().store().append(stream, 'no_stream', events);
    });

    test('returns events as they were appended, with their place', async () => {
      const stored = await readAll(opened().store(), stream);
      expect(stored).toEqual(
        events.map((event, revision) => ({
          ...event,
          stream,
          revision,
          position: expect.any(String),
        })),
      );
      expectStrictlyAscending(stored.map((event) => event.position));
    });

    test.each([
      ['forwards', [0, 1, 2]],
      ['backwards', [9, 8, 7]],
    ] as const)(
      '%s, ends with the event that makes the page large enough',
      async (direction, revisions) => {
        const long = newStream();
        const each = newEvent('x'.repeat(50_000));
        const bytes = bytesOf(each);
        const long10 = Array.from({ length: 10 }, () => newEvent('x'.repeat(50_000)));
        await opened().store().append(long, 'no_stream', long10);
        const read = async (maxBytes: number): Promise<number[]> =>
          (await opened().store().readStream(long, { direction, limit: 100, maxBytes })).map(
            ({ revision }) => revision,
          );
        expect(await read(2 * bytes + 1)).toEqual(revisions);
        expect(await read(3 * bytes)).toEqual(revisions);
        expect(await read(1)).toEqual(revisions.slice(0, 1));
      },
    );

    test.each([
      ['forwards', undefined, 4, [0, 1, 2, 3]],
      ['forwards', 3, 4, [3, 4, 5, 6]],
      ['forwards', 8, 100, [8, 9]],
      ['forwards', 9, 1, [9]],
      ['forwards', 10, 5, []],
      ['forwards', 1_000_000, 5, []],
      ['backwards', undefined, 4, [9, 8, 7, 6]],
      ['backwards', 3, 2, [3, 2]],
      ['backwards', 1, 100, [1, 0]],
      ['backwards', 0, 1, [0]],
      ['backwards', 1_000_000, 3, [9, 8, 7]],
    ] as const)(
      'reads %s from revision %s at most %i events',
      async (direction, from, limit, revisions) => {
        const read = await opened()
          .store()
          .readStream(stream, { direction, limit, ...(from === undefined ? {} : { from }) });
        expect(read.map((event) => event.revision)).toEqual(revisions);
        expect(idsOf(read)).toEqual(revisions.map((revision) => ids[revision]));
      },
    );

    test.each(['forwards', 'backwards'] as const)(
      'returns nothing of an unknown stream, %s',
      async (direction) => {
        expect(await opened().store().readStream(newStream(), { direction, limit: 10 })).toEqual(
          [],
        );
        expect(
          await opened().store().readStream(newStream(), { direction, from: 3, limit: 10 }),
        ).toEqual([]);
      },
    );

    test('does not take a stream for another one whose name begins the same', async () => {
      const store = opened().store();
      await store.append(`${stream}x`, 'no_stream', newEvents(1));
      expect(await readAll(store, stream)).toHaveLength(10);
      expect(await readAll(store, `${stream}x`)).toHaveLength(1);
    });

    test('sees every append as soon as it is acknowledged', async () => {
      const store = opened().store();
      const own = newStream();
      for (let revision = 0; revision < 50; revision += 1) {
        await store.append(own, revision === 0 ? 'no_stream' : revision - 1, newEvents(1));
        const [last] = await store.readStream(own, { direction: 'backwards', limit: 1 });
        expect(last?.revision).toBe(revision);
      }
    });

    test.each(Object.entries(TEXTS))('keeps %s exactly', async (_, text) => {
      const store = opened().store();
      const own = newStream();
      const event: EncodedEvent = {
        ...newEvent({ text }),
        metadata: JSON.stringify({ request_id: String(text).slice(0, 100) }),
      };
      await store.append(own, 'no_stream', [event]);
      const [stored] = await readAll(store, own);
      expect(stored?.data === event.data && stored.metadata === event.metadata).toBe(true);
    });

    test('keeps the letters of the JSON text, not only its meaning', async () => {
      const store = opened().store();
      const own = newStream();
      const data = '{ "b":1.0,\n "a" : 12345678901234567890, "u": "\\u00e9" }';
      await store.append(own, 'no_stream', [{ ...newEvent(), data }]);
      expect((await readAll(store, own))[0]?.data).toBe(data);
    });
  });

  describe('head', () => {
    test('has reached every event that was acknowledged, and not the next one', async () => {
      const store = opened().store();
      const first = await store.append(newStream(), 'no_stream', newEvents(2));
      const head = (await store.head()) ?? '';
      expect(first.position <= head).toBe(true);
      const second = await store.append(newStream(), 'no_stream', newEvents(1));
      expect(head < second.position).toBe(true);
    });
  });
}
