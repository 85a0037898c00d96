import { afterEach, expect, jest, test } from '@jest/globals';
import { bucketOf } from '../../../../../infra/sqlite/readModels/buckets.ts';
import { findSessionsByWords } from '../../../../../infra/sqlite/readModels/searchSessions.ts';
import type { ReaderThread } from '../../../../../infra/sqlite/readModels/background/readerThread.ts';
import type { GenerationReader } from '../../../../../infra/sqlite/readModels/generationReader.ts';

/** Only searches for several words use a thread. */
const NO_THREAD = {} as ReaderThread;
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
    iterate(_sql: string, _words: string, first: number, last: number) {
      now += tookMs(searched.length);
      searched.push([first, last]);
      if (searched.length > most) throw new Error('so many pieces');
      return [];
    },
  };
  const current = () => reader as unknown as GenerationReader;
  const search = { limit: 10, bytes: 1_000, words: ['word'] };
  expect(await findSessionsByWords(current, NO_THREAD, 'acct_1', search)).toEqual({
    rows: [],
    more: false,
  });
  // Every bucket once, from the newest on.
  expect([searched[0]![1], searched.at(-1)![0]]).toEqual([TEN_YEARS_MS, 1]);
  searched.slice(1).forEach(([, last], index) => expect(last).toBe(searched[index]![0] - 1));
});

test.each(['newest', 'oldest'] as const)(
  'a page of the %s sessions is searched from the end of the page before',
  async (order) => {
    const after = 'session_01kb2xw4r5e8q9v3m7t6n0c1d2';
    const searched: number[] = [];
    const reader = {
      get: () => ({ lowest: 1, highest: 2 * bucketOf(after) }),
      iterate: (_sql: string, _words: string, first: number, last: number) => {
        searched.push(order === 'newest' ? last : first);
        return [];
      },
    };
    const current = () => reader as unknown as GenerationReader;
    const search = { after, order, limit: 10, bytes: 1_000, words: ['word'] };
    await findSessionsByWords(current, NO_THREAD, 'acct_1', search);
    expect(searched[0]).toBe(bucketOf(after));
  },
);

test('what takes milliseconds before a search is done in steps of its own', async () => {
  let now = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  let loopTurn = 0;
  const count = (): void => {
    loopTurn += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const queries: { loopTurn: number; kind: string }[] = [];
  const answer = <Result>(kind: string, result: Result): Result => {
    now += 3;
    queries.push({ loopTurn, kind });
    return result;
  };
  const entries = Array.from({ length: 300 }, (_, nth) => ({ entry: `session_${1_000 + nth}` }));
  const reader = {
    get(sql: string) {
      if (!sql.includes('OFFSET')) return answer('count', { turns: 1_000_000 });
      return answer('probe', sql.includes('session_labels') ? {} : undefined);
    },
    all(sql: string, ids: string) {
      if (sql.includes('AS entry FROM')) return answer('entries', entries);
      if (!sql.includes('json_each')) return answer('scan', []);
      const rows = (JSON.parse(ids) as string[]).map((session_id) => ({ session_id, turns: 1 }));
      return answer('sessions', rows);
    },
  };
  const current = () => reader as unknown as GenerationReader;
  await findSessionsByWords(current, NO_THREAD, 'acct_1', {
    limit: 10,
    bytes: 1_000,
    words: ['one', 'two'],
    labels: [['a', '1'], ['b', '2']], // prettier-ignore
    agent_id: 'agent_1',
  });
  clearImmediate(counting);
  const kinds = queries.map(({ kind }) => kind);
  expect(kinds.slice(0, 9)).toEqual(
    'probe probe probe entries sessions sessions sessions count count'.split(' '),
  );
  // Entries are read with the look at how many there are, before others are added.
  const steps = queries.filter(({ kind }) => kind !== 'entries').map((query) => query.loopTurn);
  expect(new Set(steps.slice(0, 8)).size).toBe(8);
});
