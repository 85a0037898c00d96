import { afterEach, expect, jest, test } from '@jest/globals';
import { findSessionsByWords } from '../../../../../infra/sqlite/readModels/searchSessions.ts';
import type { GenerationReader } from '../../../../../infra/sqlite/readModels/generationReader.ts';

const TEN_YEARS_MS = 10 * 365 * 24 * 60 * 60 * 1_000;

afterEach(() => {
  jest.restoreAllMocks();
});

test.each([
  ['all take 3 ms', 100, () => 3],
  ['all take 12 ms', 100, () => 12],
  ['all but the first take longer than a piece may', 3_000, (piece: number) => (piece ? 12 : 0)],
])('a search that finds nothing in years has few pieces where %s', async (_, most, tookMs) => {
  let now = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  const searched: (readonly [first: number, last: number])[] = [];
  const reader = {
    get: () => ({ lowest: 1, highest: TEN_YEARS_MS }),
    all(_sql: string, _words: string, first: number, last: number) {
      now += tookMs(searched.length);
      searched.push([first, last]);
      if (searched.length > most) throw new Error('so many pieces');
      return [];
    },
  };
  const current = () => reader as unknown as GenerationReader;
  const search = { limit: 10, bytes: 1_000, words: ['word'] };
  expect(await findSessionsByWords(current, 'acct_1', search)).toEqual({ rows: [], more: false });
  // Every bucket once, from the newest on.
  expect([searched[0]![1], searched.at(-1)![0]]).toEqual([TEN_YEARS_MS, 1]);
  searched.slice(1).forEach(([, last], index) => expect(last).toBe(searched[index]![0] - 1));
});
