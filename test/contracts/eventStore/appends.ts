import { describe, expect, test } from '@jest/globals';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { replaceCiphertexts } from '../../../shared/eventlog/encryption/protectedJson.ts';
import { withoutBoxes } from '../../support/builders/chainStored.ts';
import {
  commitText,
  openText,
  type DisclosedText,
} from '../../../shared/eventlog/encryption/protectedText.ts';
import {
  MAX_APPEND_BYTES,
  type EncodedEvent,
  type StoredEvent,
} from '../../../shared/ports/eventStore.ts';
import { newTextKey } from '../../support/stores/textKeys.ts';
import {
  appendEach,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  readAll,
  refusedWith,
  type Opened,
} from './support.ts';

/** An event whose data and metadata take exactly so many bytes, fewer characters. */
const eventOf = (bytes: number): EncodedEvent => ({
  ...newEvent(),
  data: JSON.stringify('é'.repeat((bytes - 2) / 2)),
  metadata: '',
});

export function appendContract(opened: Opened): void {
  describe('append', () => {
    test('starts a stream at revision 0 and continues it at the revision of its last event', async () => {
      const store = opened().store();
      const stream = newStream();
      const first = await store.append(stream, 'no_stream', newEvents(1));
      const second = await store.append(stream, 0, newEvents(3));
      expect([first.revision, second.revision]).toEqual([0, 3]);
      expect(first.position < second.position).toBe(true);
    });

    test('resolves with the position of its last event', async () => {
      const store = opened().store();
      const stream = newStream();
      const { position } = await store.append(stream, 'no_stream', newEvents(3));
      expect((await readAll(store, stream)).map((event) => event.position).indexOf(position)).toBe(
        2,
      );
    });

    test('writes several events next to each other and in order', async () => {
      const store = opened().store();
      const stream = newStream();
      const events = newEvents(20);
      await store.append(stream, 'no_stream', events);
      const stored = await readAll(store, stream);
      expect(idsOf(stored)).toEqual(idsOf(events));
      expect(stored.map((event) => event.revision)).toEqual(events.map((_, index) => index));
    });

    test('closes the texts that an event commits to, where the commitments stand', async () => {
      const store = opened().store();
      const stream = newStream();
      const key = newTextKey();
      const texts = ['grüße', 'a "quoted" $& text', ''].map(commitText);
      const [first, second, third] = texts.map(({ sha256 }) => ({ sha256 }));
      const event = newEvent({ calls: [second, { third }], input: first, turn: 1 });
      await store.append(stream, 'no_stream', [{ ...event, toClose: { texts, key } }]);
      const [{ data, ...stored }] = (await readAll(store, stream)) as [StoredEvent];
      expect(withoutBoxes(data)).toBe(event.data);
      expect(stored).not.toHaveProperty('toClose');
      const found: DisclosedText[] = [];
      replaceCiphertexts(data, (box, sha256) => {
        found.push(openText({ box, sha256 }, key, stream));
        return '0';
      });
      expect(found).toEqual([texts[1], texts[2], texts[0]]);
    });

    test('refuses texts that the event does not commit to, and leaves nothing', async () => {
      const store = opened().store();
      const stream = newStream();
      const toClose = { texts: [commitText('lost')], key: newTextKey() };
      await refusedWith(
        'event_invalid',
        store.append(stream, 'no_stream', [{ ...newEvent(), toClose }]),
      );
      expect(await readAll(store, stream)).toEqual([]);
    });

    test('counts the boxes of texts to what one append may carry', async () => {
      const store = opened().store();
      const stream = newStream();
      // With its box it takes a third more.
      const texts = [commitText('x'.repeat(MAX_APPEND_BYTES - 100_000))];
      const event = newEvent({ input: { sha256: texts[0]!.sha256 } });
      await refusedWith(
        'event_invalid',
        store.append(stream, 'no_stream', [{ ...event, toClose: { texts, key: newTextKey() } }]),
      );
      expect(await readAll(store, stream)).toEqual([]);
    });

    test.each([
      ['no_stream', 'no_stream'],
      ['an earlier revision', 0],
      ['a later revision', 7],
    ] as const)(
      'refuses %s where the stream is at another revision, and leaves nothing',
      async (_, expected) => {
        const store = opened().store();
        const stream = newStream();
        await store.append(stream, 'no_stream', newEvents(2));
        await refusedWith('stream_conflict', store.append(stream, expected, newEvents(2)));
        expect(await readAll(store, stream)).toHaveLength(2);
      },
    );

    test('refuses a revision of a stream that does not exist', async () => {
      const store = opened().store();
      const stream = newStream();
      await refusedWith('stream_conflict', store.append(stream, 0, newEvents(1)));
      expect(await readAll(store, stream)).toEqual([]);
    });

    test('answers the same ids at the same place with the first outcome, also after later appends and after a restart', async () => {
      const stream = newStream('agent');
      const events = newEvents(2);
      const store = opened().store();
      await store.append(stream, 'no_stream', newEvents(1));
      const outcome = await store.append(stream, 0, events);
      expect(await store.append(stream, 0, events)).toEqual(outcome);
      await store.append(stream, 2, newEvents(1));
      expect(await store.append(stream, 0, events)).toEqual(outcome);
      await opened().reopen();
      expect(await opened().store().append(stream, 0, events)).toEqual(outcome);
      expect(await readAll(opened().store(), stream)).toHaveLength(4);
    });

    test('answers an append that is sent many times at once with one outcome, written once', async () => {
      const store = opened().store();
      const stream = newStream();
      const events = newEvents(2);
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, () => store.append(stream, 'no_stream', events)),
      );
      expect(
        new Set(outcomes.map((outcome) => `${outcome.revision} ${outcome.position}`)).size,
      ).toBe(1);
      expect(idsOf(await readAll(store, stream))).toEqual(idsOf(events));
    });

    test('refuses an id that exists in another stream', async () => {
      const store = opened().store();
      const events = newEvents(1);
      await store.append(newStream(), 'no_stream', events);
      const other = newStream();
      await refusedWith('event_id_reused', store.append(other, 'no_stream', events));
      expect(await readAll(store, other)).toEqual([]);
    });

    test('refuses an id that exists elsewhere in the stream', async () => {
      const store = opened().store();
      const stream = newStream();
      const events = newEvents(2);
      await store.append(stream, 'no_stream', events);
      await refusedWith('event_id_reused', store.append(stream, 1, events));
      await refusedWith('event_id_reused', store.append(stream, 'no_stream', events.toReversed()));
      expect(idsOf(await readAll(store, stream))).toEqual(idsOf(events));
    });

    test('refuses an append of which only a part is there, and writes none of the rest', async () => {
      const store = opened().store();
      const stream = newStream();
      const events = newEvents(2);
      await store.append(stream, 'no_stream', events);
      await refusedWith(
        'event_id_reused',
        store.append(stream, 'no_stream', [...events, newEvent()]),
      );
      await refusedWith('event_id_reused', store.append(stream, 1, [newEvent(), ...events]));
      expect(idsOf(await readAll(store, stream))).toEqual(idsOf(events));
    });

    test('refuses one id twice in an append', async () => {
      const store = opened().store();
      const stream = newStream();
      const event = newEvent();
      await refusedWith('event_id_reused', store.append(stream, 'no_stream', [event, event]));
      expect(await readAll(store, stream)).toEqual([]);
    });

    test('refuses an append of nothing', async () => {
      await refusedWith('event_invalid', opened().store().append(newStream(), 'no_stream', []));
    });

    test('takes an append of exactly the size limit and refuses one byte more', async () => {
      const store = opened().store();
      const stream = newStream();
      const events = [eventOf(MAX_APPEND_BYTES / 2), eventOf(MAX_APPEND_BYTES / 2)];
      await store.append(stream, 'no_stream', events);
      await refusedWith(
        'event_invalid',
        store.append(stream, 1, [
          eventOf(MAX_APPEND_BYTES / 2),
          { ...eventOf(MAX_APPEND_BYTES / 2), metadata: ' ' },
        ]),
      );
      await refusedWith(
        'event_invalid',
        store.append(newStream(), 'no_stream', [{ ...eventOf(MAX_APPEND_BYTES), metadata: ' ' }]),
      );
      expect((await readAll(store, stream)).map((event) => event.data)).toEqual(
        events.map((event) => event.data),
      );
    });

    test('lets exactly one of 200 appends win that expect the same revision at once', async () => {
      const store = opened().store();
      const stream = newStream();
      await store.append(stream, 'no_stream', newEvents(1));
      const appends = Array.from({ length: 200 }, () => newEvents(2));
      const outcomes = await Promise.allSettled(
        appends.map((events) => store.append(stream, 0, events)),
      );
      const winners = outcomes.flatMap((outcome, index) =>
        outcome.status === 'fulfilled' ? [index] : [],
      );
      expect(winners).toHaveLength(1);
      expect(
        outcomes.filter(
          (outcome) =>
            outcome.status === 'rejected' && isTurnlogError(outcome.reason, 'stream_conflict'),
        ),
      ).toHaveLength(199);
      expect(idsOf((await readAll(store, stream)).slice(1))).toEqual(
        idsOf(appends[winners[0] ?? -1] ?? []),
      );
    });

    test('keeps every stream in order when many are appended to at once', async () => {
      const store = opened().store();
      const streams = Array.from({ length: 40 }, () => ({
        name: newStream('session'),
        events: newEvents(10),
      }));
      await Promise.all(streams.map(({ name, events }) => appendEach(store, name, events)));
      for (const { name, events } of streams)
        expect(idsOf(await readAll(store, name))).toEqual(idsOf(events));
    });

    test('lets a refused append touch none of those sent with it', async () => {
      const store = opened().store();
      const reused = newEvents(1);
      await store.append(newStream(), 'no_stream', reused);
      const streams = Array.from({ length: 10 }, () => newStream());
      const outcomes = await Promise.allSettled([
        ...streams.map((stream) => store.append(stream, 'no_stream', newEvents(2))),
        store.append(newStream(), 'no_stream', [newEvent(), ...reused]),
        store.append(newStream(), 4, newEvents(1)),
        store.append(newStream(), 'no_stream', []),
      ]);
      expect(outcomes.map((outcome) => outcome.status)).toEqual([
        ...streams.map(() => 'fulfilled'),
        'rejected',
        'rejected',
        'rejected',
      ]);
      for (const stream of streams) expect(await readAll(store, stream)).toHaveLength(2);
    });

    test('keeps what it acknowledged over a restart, and goes on after it', async () => {
      const stream = newStream('account');
      const events = newEvents(5);
      const results = await appendEach(opened().store(), stream, events);
      const before = await readAll(opened().store(), stream);
      await opened().reopen();
      expect(await readAll(opened().store(), stream)).toEqual(before);
      const next = await opened().store().append(stream, 4, newEvents(1));
      expect(next.revision).toBe(5);
      expect((results.at(-1)?.position ?? '~') < next.position).toBe(true);
    });
  });
}
