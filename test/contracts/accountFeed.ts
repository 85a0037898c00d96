import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import type { ProtectedStore } from '../../shared/eventlog/encryption/protectedStore.ts';
import {
  createAccountFeed,
  type AccountFeed,
  type FeedItem,
} from '../../shared/feed/accountFeed.ts';
import type { FeedMemory } from '../../shared/feed/pageMemory.ts';
import { LIMITS } from '../../shared/limits.ts';
import { agentCreated } from '../support/builders/events.ts';
import { feedWriter, idsOf, taken } from '../support/builders/feedLog.ts';
import { size } from '../support/jest/size.ts';
import { eventually } from '../support/processes/operator.ts';
import { memoryKeys } from '../support/fakes/memoryKeys.ts';
import type { EventStoreFixture } from './eventStore.ts';
import { permitWith, unlimitedFeedMemory } from '../support/builders/memory.ts';

const RUNS = size({ small: 20, full: 300 });

/** What followers of an account rely on, over any event store. */
export function accountFeedContract(name: string, open: () => Promise<EventStoreFixture>): void {
  describe(`the feed of an account over ${name}`, () => {
    let fixture: EventStoreFixture;
    const { keys, kept, open: reopened } = memoryKeys();
    let subscriptions = 0;
    const counted = (): ProtectedStore => {
      const store = fixture.store();
      return {
        ...store,
        keys,
        async *subscribe(options) {
          subscriptions += 1;
          try {
            yield* store.subscribe(options);
          } finally {
            subscriptions -= 1;
          }
        },
      };
    };
    let store: ProtectedStore;
    let feed: AccountFeed;
    let writer: ReturnType<typeof feedWriter>;
    beforeAll(async () => {
      fixture = await open();
      store = counted();
      feed = createAccountFeed(store);
      writer = feedWriter(store);
    });
    afterAll(async () => {
      await feed[Symbol.asyncDispose]();
      await fixture.dispose();
    });

    test('brings every event once and in order, however often it is cut off', async () => {
      const own: string[] = [];
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(fc.constantFrom('acct_1', 'acct_2'), fc.integer({ min: 1, max: 4 })), {
            maxLength: 12,
          }),
          fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 6 }),
          async (appends, cuts) => {
            for (const [account, count] of appends) {
              const ids = await writer.turns(account, count);
              if (account === 'acct_1') own.push(...ids);
            }
            let from: Parameters<typeof taken>[2]['from'] = 'start';
            const seen: string[] = [];
            for (const cut of cuts) {
              const count = Math.min(cut, own.length - seen.length);
              const { items, cursor } = await taken(feed, 'acct_1', { from, count });
              seen.push(...idsOf(items));
              if (cursor !== undefined) from = { after: cursor };
            }
            seen.push(...idsOf((await taken(feed, 'acct_1', { from })).items));
            expect(seen).toEqual(own);
          },
        ),
        { numRuns: RUNS },
      );
    });

    test('brings what is written while it is followed, to many followers by one subscription', async () => {
      const accounts = Array.from({ length: 20 }, (_, index) => `acct_live_${index}`);
      const following = accounts.map((account) =>
        taken(feed, account, { from: 'now', count: 30 }).then(({ items }) => idsOf(items)),
      );
      // Each is at the end before anything is written.
      await Promise.all(accounts.map((account) => taken(feed, account, { from: 'now' })));
      const written = new Map<string, string[]>(accounts.map((account) => [account, []]));
      for (let round = 0; round < 10; round += 1) {
        await Promise.all(
          accounts.map(async (account) =>
            written.get(account)!.push(...(await writer.turns(account, 3))),
          ),
        );
        expect(subscriptions).toBeLessThanOrEqual(1 + 8);
      }
      expect(await Promise.all(following)).toEqual([...written.values()]);
      expect(subscriptions).toBe(1);
    });

    test('shows at once what was written, however late those who follow hear of it', async () => {
      const [followed, late] = [new Set<object>(), new Set<object>()];
      const heard = Promise.withResolvers<void>();
      const own = createAccountFeed({
        ...store,
        async *subscribe(options) {
          followed.add(options);
          try {
            for await (const batch of store.subscribe(options)) {
              if (late.has(options)) await heard.promise;
              yield batch;
            }
          } finally {
            followed.delete(options);
          }
        },
      });
      await writer.turns('acct_late', 1);
      const { cursor } = await taken(own, 'acct_late', { from: 'start' });
      // What is left is the one that all share.
      await eventually(
        async () => followed.size,
        (count) => count === 1,
      );
      for (const options of followed) late.add(options);
      const ids = await writer.turns('acct_late', 3);
      const { items } = await taken(own, 'acct_late', { from: { after: cursor! } });
      expect(idsOf(items)).toEqual(ids);
      heard.resolve();
      await own[Symbol.asyncDispose]();
    });

    test('goes on from its cursors after the store was opened anew', async () => {
      const ids = await writer.turns('acct_again', 600);
      const { items, cursor } = await taken(feed, 'acct_again', { from: 'start', count: 450 });
      await feed[Symbol.asyncDispose]();
      await fixture.reopen();
      store = counted();
      feed = createAccountFeed(store);
      writer = feedWriter(store);
      const rest = await taken(feed, 'acct_again', { from: { after: cursor! } });
      expect([...idsOf(items), ...idsOf(rest.items)]).toEqual(ids);
      expect(rest.items[0]!.event.data).toMatchObject({ input: 'hello' });
      const end = await taken(feed, 'acct_again', { from: { after: rest.cursor! } });
      expect(end.items).toEqual([]);
    });

    test('shows all before an event whose key is lost, and stops there', async () => {
      const before = await writer.write('acct_lost', 'agent-agent_1', [agentCreated()]);
      await writer.write('acct_lost', 'agent-agent_2', [agentCreated()]);
      const [lost] = await store.readStream('agent-agent_2', { direction: 'forwards', limit: 1 });
      kept.delete(/"box":"([^.]+)\./.exec(lost!.data)![1]!);
      const own = createAccountFeed({ ...store, keys: reopened() });
      const seen: string[] = [];
      const all = (async () => {
        const options = {
          from: 'start' as const,
          memory: unlimitedFeedMemory,
          signal: new AbortController().signal,
        };
        for await (const { items } of own.followAccount('acct_lost', options))
          seen.push(...idsOf(items));
      })();
      await expect(all).rejects.toMatchObject({ code: 'key_missing' });
      expect(seen).toEqual(before);
      await own[Symbol.asyncDispose]();
    });

    test('decrypts nothing before there is memory, and then brings every event in order', async () => {
      const texts = [10_000, 90_000, 10, 90_000, 50_000, 50_000].map((chars) => 'x'.repeat(chars));
      const ids: string[] = [];
      for (const text of texts) ids.push(...(await writer.turns('acct_memory', 1, text)));
      const found = jest.spyOn(store.keys, 'find');
      const own = createAccountFeed(store);
      const reserved: number[] = [];
      let held = 0;
      const memory: FeedMemory = {
        tryReserve: () => undefined,
        async reserve(bytes) {
          expect(held).toBe(0);
          reserved.push(bytes);
          found.mockClear();
          await sleep(1);
          expect(found).not.toHaveBeenCalled();
          held = bytes;
          return {
            ...permitWith(() => (held = 0)),
            resize(less) {
              held = less;
              return true;
            },
          };
        },
      };
      const { signal } = new AbortController();
      const items: FeedItem[] = [];
      let latest: readonly FeedItem[] = [];
      const options = { from: 'start' as const, memory, signal };
      for await (const page of own.followAccount('acct_memory', options)) {
        // The previous page is no longer in memory.
        expect(latest).toHaveLength(0);
        latest = page.items;
        items.push(...page.items);
        const shown = page.items.map(({ event }) => JSON.stringify(event));
        expect(held).toBeGreaterThanOrEqual(2 * shown.join('').length);
        if (items.length === ids.length) break;
      }
      expect(idsOf(items)).toEqual(ids);
      expect(held).toBe(0);
      const { memoryPerByte, pageBytes } = LIMITS.feed;
      // Each large event has a page to itself; the last two do not fit into one.
      expect(reserved).toHaveLength(texts.length);
      for (const bytes of reserved) expect(bytes).toBeGreaterThanOrEqual(memoryPerByte * pageBytes);
      found.mockRestore();
      await own[Symbol.asyncDispose]();
    });

    test('ends without an error when it is stopped while it waits for memory', async () => {
      await writer.write('acct_waiting', 'agent-agent_1', [agentCreated()]);
      const stop = new AbortController();
      const memory: FeedMemory = {
        tryReserve: () => undefined,
        async reserve(_bytes, signal) {
          stop.abort();
          signal.throwIfAborted();
          throw new Error('it was not stopped');
        },
      };
      const options = { from: 'start' as const, memory, signal: stop.signal };
      for await (const { items } of feed.followAccount('acct_waiting', options))
        expect(items).toEqual([]);
    });

    test('refuses what is a cursor of another log', async () => {
      const [one] = (await taken(feed, 'acct_1', { from: 'start', count: 1 })).items;
      const another = one!.cursor.replace(/.{24}$/, (text) => text.split('').toReversed().join(''));
      await expect(taken(feed, 'acct_1', { from: { after: another } })).rejects.toMatchObject({
        code: 'position_unknown',
      });
    });

    test('ends for all who follow when it is disposed of', async () => {
      const ending = createAccountFeed(store);
      const ends = ['acct_1', 'acct_2'].map((account) =>
        taken(ending, account, { from: 'now', count: 1 }),
      );
      await taken(ending, 'acct_1', { from: 'now' });
      await ending[Symbol.asyncDispose]();
      for (const { items } of await Promise.all(ends)) expect(items).toEqual([]);
    });
  });
}
