import { beforeEach, expect, test } from '@jest/globals';
import { LIMITS } from '../../../../shared/limits.ts';
import type { IndexProgress } from '../../../../shared/search/turnIndex.ts';
import {
  findSessions,
  searchSessions,
  type SessionSearch,
} from '../../../../shared/search/searchSessions.ts';
import { wordsKeyId, createWordTokenizer } from '../../../../shared/search/wordTokens.ts';
import { sessionRow } from '../../../support/builders/events.ts';
import { positionOf } from '../../../support/builders/history.ts';
import { memoryKeys } from '../../../support/fakes/memoryKeys.ts';
import { skipPauses } from '../../../support/fakes/jumpingClock.ts';

skipPauses();

const FROM = '2026-11-23T09:01:00.000Z';

let progress: IndexProgress;
let isBehind: boolean;
let looks: number;
let readies: number;
let asked: unknown[];
let onAsked: () => void;
let keys: ReturnType<typeof memoryKeys>['keys'];
beforeEach(() => {
  progress = {
    generation: 1,
    ended: positionOf(100),
    indexed: positionOf(100),
    unindexed_from: FROM,
  };
  isBehind = true;
  onAsked = () => undefined;
  asked = [];
  readies = 0;
  ({ keys } = memoryKeys());
});

const search = (query: Partial<SessionSearch>, signal?: AbortSignal, find = searchSessions) =>
  find(
    {
      readModels: {
        indexProgress: async () => ({ ...progress }),
        async hasUnindexed(...given) {
          expect(given).toEqual(['acct_1', '2026-11-23T09:00:00.000Z', positionOf(100)]);
          looks += 1;
          return isBehind;
        },
        async listSessions(_accountId, page, given) {
          asked.push(page);
          expect(given).toBe(signal);
          onAsked();
          return { rows: [sessionRow()], more: false };
        },
      },
      store: { keys },
      async beforeRead() {
        readies += 1;
      },
    },
    'acct_1',
    { limit: 1, bytes: 1, ...query },
    signal,
  );

test('words are sought by their tokens, each once', async () => {
  await search({ q: 'One two ONE' });
  const tokenOf = (await createWordTokenizer(keys, 'acct_1'))!;
  expect(asked).toEqual([{ limit: 1, bytes: 1, words: ['one', 'two'].map(tokenOf) }]);
});

test('a list without words waits for no index', async () => {
  progress.indexed = null;
  expect((await search({})).rows).toHaveLength(1);
  expect(asked).toEqual([{ limit: 1, bytes: 1 }]);
});

test('a search waits until what had ended when it came is indexed, whatever ends meanwhile', async () => {
  progress.indexed = positionOf(99);
  const searching = search({ q: 'one' });
  setTimeout(() => {
    expect([asked, readies]).toEqual([[], 0]);
    progress = { ...progress, ended: positionOf(200), indexed: positionOf(100) };
  }, 60);
  expect((await searching).rows).toHaveLength(1);
  expect(readies).toBe(1);
});

test('a search that would wait for too long answers, and says what it may have missed', async () => {
  progress.indexed = positionOf(37);
  looks = 0;
  expect(await search({ q: 'one' })).toMatchObject({
    rows: [{}],
    index: { complete_until: FROM },
  });
  // Each takes time of the main thread.
  expect(looks).toBeLessThan(LIMITS.search.waitMs / 50);
});

test('a search that needs all turns is refused instead', async () => {
  progress.indexed = positionOf(37);
  await expect(search({ q: 'one' }, undefined, findSessions)).rejects.toMatchObject({
    code: 'store_unavailable',
    retriable: true,
    message: expect.stringContaining(FROM),
  });
  progress.indexed = positionOf(100);
  expect(await search({ q: 'one' }, undefined, findSessions)).not.toHaveProperty('index');
});

test('an account whose own turns are indexed does not wait for those of others', async () => {
  progress.indexed = positionOf(37);
  isBehind = false;
  const startedAt = performance.now();
  expect(await search({ q: 'one' })).not.toHaveProperty('index');
  expect(performance.now() - startedAt).toBeLessThan(LIMITS.search.waitMs);
});

test('one that nobody waits for any more ends, whether it waits for the index or is searched', async () => {
  const left = new AbortController();
  await search({ q: 'one' }, left.signal);
  asked = [];
  progress.indexed = positionOf(37);
  const searching = search({ q: 'one' }, left.signal);
  const ended = expect(searching).rejects.toThrow('left');
  left.abort(new Error('left'));
  await ended;
  expect(asked).toEqual([]);
});

test('what was sought while a rebuilt generation came, whose index is empty, is sought once more', async () => {
  onAsked = () => {
    if (asked.length > 1) return;
    progress = { ...progress, generation: 2, indexed: null };
    setTimeout(() => {
      expect(asked).toHaveLength(1);
      progress = { ...progress, indexed: positionOf(100) };
    }, 60);
  };
  expect((await search({ q: 'one' })).rows).toHaveLength(1);
  expect(asked).toHaveLength(2);
  onAsked = () => (progress = { ...progress, generation: 3, indexed: positionOf(37) });
  expect(await search({ q: 'one' })).toMatchObject({ index: { complete_until: FROM } });
});

test('of an erased account nothing is found', async () => {
  await keys.endErasure('account-acct_1', [wordsKeyId('acct_1')]);
  expect(await search({ q: 'one' })).toEqual({ rows: [], more: false });
  expect(asked).toEqual([]);
});
