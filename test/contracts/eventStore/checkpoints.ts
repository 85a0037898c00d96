import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Checkpoint, EventBatch, Position } from '../../../shared/ports/eventStore.ts';
import { declareRestored } from '../../support/stores/declareRestored.ts';
import {
  appendEach,
  follow,
  idsOf,
  movedOn,
  newEvent,
  newStream,
  readAll,
  type EventStoreFixture,
} from './support.ts';

const HASH = 'ab'.repeat(32);

const hashedEvents = (count: number) =>
  Array.from({ length: count }, () => ({
    ...newEvent(),
    metadata: JSON.stringify({ account_id: 'acct_1', hash: HASH }),
  }));

/**
 * Where a follower resumes, and what it is told where it can't. The log may hold any number of
 * events of others, none of which are appended meanwhile.
 */
export function checkpointContract(open: () => Promise<EventStoreFixture>): void {
  describe('a checkpoint', () => {
    let fixture: EventStoreFixture;
    let root: string;
    /** The end of the log before this suite; undefined where it was empty. */
    let start: Position | undefined;
    /** The events of this suite, two at a time. */
    let known: EventBatch[];
    beforeAll(async () => {
      fixture = await open();
      const store = fixture.store();
      start = await store.head();
      if (start === undefined) expect(await store.firstEvent()).toBeUndefined();
      await appendEach(store, newStream(), hashedEvents(5));
      known = await batchesAfter(start, 2);
      root = known[0]!.checkpoint!.log_id;
    });
    afterAll(() => fixture.dispose());

    async function batchesAfter(
      after: Checkpoint | Position | undefined,
      batchSize = 100,
    ): Promise<EventBatch[]> {
      const subscription = follow(fixture.store(), after, batchSize);
      try {
        return await subscription.until((_, batch) => batch.caughtUp);
      } finally {
        subscription.stop();
      }
    }
    const eventsOf = (batches: readonly EventBatch[]) => batches.flatMap(({ events }) => events);
    /** The latest one that has events behind it. */
    const latest = (): Checkpoint => {
      const last = eventsOf(known).at(-1)!.id;
      return known.findLast(({ checkpoint }) => checkpoint?.event_id !== last)!.checkpoint!;
    };

    test('is the last event of its batch, with its hash and the id of the log', async () => {
      const store = fixture.store();
      const first = await store.firstEvent();
      if (start === undefined) {
        expect(first).toEqual(eventsOf(known)[0]);
        expect(root).toBe(first?.id);
      }
      for (const { events, checkpoint } of known)
        if (events.length > 0)
          expect(checkpoint).toEqual({
            log_id: root,
            position: events.at(-1)?.position,
            event_id: events.at(-1)?.id,
            event_hash: expect.any(String),
          });
      expect(known.at(-1)?.checkpoint?.event_hash).toBe(HASH);
    });

    test('is not there before the first event, and stays where no event follows', async () => {
      const [again] = await batchesAfter(known.at(-1)?.checkpoint);
      expect(again).toMatchObject({ events: [], checkpoint: known.at(-1)?.checkpoint });
      const [named] = await batchesAfter(known.at(-1)?.position);
      expect(named).toMatchObject({ events: [], checkpoint: undefined });
    });

    test('resumes exactly behind its event, for every batch, over a restart too', async () => {
      const all = eventsOf(known);
      await fixture.reopen();
      for (const { checkpoint } of known) {
        const from = all.findIndex(({ id }) => id === checkpoint?.event_id) + 1;
        expect(idsOf(eventsOf(await batchesAfter(checkpoint)))).toEqual(idsOf(all.slice(from)));
      }
    });

    test('finds an event at its own position, and none where none begins', async () => {
      const store = fixture.store();
      const all = eventsOf(known);
      for (const event of all) expect(await store.eventAt(event.position)).toEqual(event);
      const positions = new Set(all.map(({ position }) => position));
      for (const { position } of all) {
        const next = movedOn(position, 1n);
        if (!positions.has(next)) expect(await store.eventAt(next)).toBeUndefined();
      }
      const end = all.at(-1)!.position;
      const bogus = '18446744073709551615';
      const others = ['', 'zzz', '-1', bogus, `${bogus}/${bogus}`, movedOn(end, 1_000_000_000n)];
      for (const position of others)
        expect(await store.eventAt(position as Position)).toBeUndefined();
    });

    const OTHERS: [string, (checkpoint: Checkpoint) => Partial<Checkpoint>, string][] = [
      ['id', () => ({ event_id: 'b0a4f6f0-0000-4000-8000-000000000000' }), 'holds the event'],
      ['position', ({ position }) => ({ position: movedOn(position, 1n) }), 'this log holds'],
      [
        'position, beyond the end',
        ({ position }) => ({ position: movedOn(position, 1_000_000_000n) }),
        'ends at',
      ],
      ['position, which is none', () => ({ position: 'zzz' as Position }), 'this log'],
      ['log', () => ({ log_id: 'b0a4f6f0-0000-4000-8000-000000000001' }), 'this log is'],
    ];

    test.each(OTHERS)('with another %s is refused, and said to be', async (_, change, found) => {
      const other = { ...latest(), ...change(latest()) };
      const refused = batchesAfter(other);
      await expect(refused).rejects.toMatchObject({
        code: 'log_changed',
        message: expect.stringContaining(found),
      });
      const { message } = (await refused.catch((error: unknown) => error)) as Error;
      for (const part of [other.event_id, other.position, other.log_id, 'log accept-restored'])
        expect(message).toContain(part);
    });

    test('with another hash fits: the event was changed, which readers of its stream report', async () => {
      const changed = { ...latest(), event_hash: 'cd'.repeat(32) };
      expect(eventsOf(await batchesAfter(changed))).toEqual(eventsOf(await batchesAfter(latest())));
    });

    test('of a log that another was declared to stand for is told so, and only that', async () => {
      const store = fixture.store();
      const lost = { ...latest(), event_id: 'b0a4f6f0-0000-4000-8000-000000000000' };
      const declared = await declareRestored(store, ['log_1']);
      for (const log_id of [root, 'log_1'])
        await expect(batchesAfter({ ...lost, log_id })).rejects.toMatchObject({
          code: 'log_restored',
          message: expect.stringContaining(declared),
        });
      await expect(batchesAfter({ ...lost, log_id: 'log_2' })).rejects.toMatchObject({
        code: 'log_changed',
      });
      // What fits goes on: this follower has lost nothing.
      const rest = await batchesAfter(latest());
      expect(eventsOf(rest).at(-1)).toMatchObject({
        id: declared,
        type: 'log.restore_accepted.v1',
      });
    });

    test('behind a declaration has its id, and one before it the id of then', async () => {
      const store = fixture.store();
      const declared = await declareRestored(store);
      const stream = newStream();
      await appendEach(store, stream, hashedEvents(2));
      const subscription = follow(store, start, 1);
      const batches = await subscription.until((_, batch) => batch.caughtUp);
      const ids = new Map(
        batches.map(({ events, checkpoint }) => [events.at(-1)?.id, checkpoint?.log_id]),
      );
      expect(ids.get(eventsOf(known)[0]?.id)).toBe(root);
      expect(ids.get(declared)).toBe(declared);
      for (const { id } of await readAll(store, stream)) expect(ids.get(id)).toBe(declared);
      // A subscription that is there while somebody declares learns of it by the event.
      const again = await declareRestored(store);
      const [news] = await subscription.until((events) => events.some(({ id }) => id === again));
      subscription.stop();
      expect(news?.checkpoint).toMatchObject({ log_id: again, event_id: again });
      expect(await batchesAfter(news?.checkpoint)).toMatchObject([{ events: [] }]);
    });
  });
}
