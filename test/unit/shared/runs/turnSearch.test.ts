import { beforeEach, expect, test } from '@jest/globals';
import { LRUCache } from 'lru-cache';
import { createTurnSearch } from '../../../../shared/runs/turnSearch.ts';
import type { ReadOptions, StoredEvent } from '../../../../shared/ports/eventStore.ts';
import { sessionDescribed, turnStarted } from '../../../support/builders/events.ts';
import { turnsDuring } from '../../../support/fakes/loopTurns.ts';

const session_id = 'session_1';
const REQUEST = { account_id: 'acct_1', session_id };
const claim = { request_id: 'request', reserved: { revision: 2 }, isFirstAttempt: false };

let stream: StoredEvent[];
let read: number;
let turnSearches: LRUCache<string, { scannedTo: number }>;

const append = (count: number, { type, data }: { type: string; data: object }): void => {
  for (let appended = 0; appended < count; appended += 1)
    stream.push({
      id: `${stream.length}`,
      stream: `session-${session_id}`,
      revision: stream.length,
      position: `${stream.length}` as StoredEvent['position'],
      type,
      data: JSON.stringify(data),
      metadata: '{}',
    });
};

/** Reads of an embedded log do not wait. */
async function readStream(_: string, { from = 0, limit }: ReadOptions): Promise<StoredEvent[]> {
  const page = stream.slice(from, from + limit);
  read += page.length;
  return page;
}

const search = (of = claim) =>
  createTurnSearch({ store: { readStream }, runState: { turnSearches } } as never, {
    ...REQUEST,
    claim: of,
  });

beforeEach(() => {
  stream = [];
  read = 0;
  turnSearches = new LRUCache<string, { scannedTo: number }>({ max: 10 });
  append(3_000, sessionDescribed());
});

test('a search through a long session gives other work turns of the event loop', async () => {
  const turns = await turnsDuring(async () => expect(await search().find({})).toBeUndefined());
  expect(read).toBe(2_997);
  // 47 pages.
  expect(turns).toBeGreaterThanOrEqual(8);
});

test('a later attempt of a request searches only what was recorded since', async () => {
  expect(await search().find({})).toBeUndefined();
  expect(read).toBe(2_997);
  append(10, sessionDescribed());
  append(1, turnStarted(1, { idempotency_key: claim.request_id }));
  const found = { session_id, turn: 1, revision: 3_010 };
  expect(await search().find({})).toMatchObject(found);
  expect(await search().find({})).toMatchObject(found);
  expect(read).toBe(2_997 + 11 + 1);
  expect(await search({ ...claim, request_id: 'other' }).find({})).toBeUndefined();
});

test('concurrent attempts of a request search different parts', async () => {
  await turnsDuring(() => Promise.all(Array.from({ length: 20 }, () => search().find({}))));
  // All of them read the first pages, before any has found that the request has none there.
  expect(read).toBeLessThan(5 * 2_997);
});

test('a search ends at its time limit, and the next attempt continues there', async () => {
  const ended = search().find({ until: performance.now() - 1 });
  await expect(ended).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(read).toBe(64);
  expect(await search().find({})).toBeUndefined();
  expect(read).toBe(2_997);
});

test('a search ends when its client has left', async () => {
  const left = AbortSignal.abort(new Error('the client left'));
  await expect(search().requireNone(2_999, { signal: left })).rejects.toThrow('the client left');
  expect(read).toBe(64);
});

test('a session of one page is searched at once', async () => {
  stream.length = 40;
  expect(await turnsDuring(() => search().find({}))).toBe(0);
  expect(read).toBe(37);
});
