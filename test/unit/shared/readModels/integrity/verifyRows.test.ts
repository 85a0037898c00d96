import { expect, test } from '@jest/globals';
import { compareKeys } from '../../../../../shared/readModels/integrity/rowReader.ts';
import { differencesOf } from '../../../../../shared/readModels/integrity/verifyRows.ts';

const session = (session_id: string, more: object = {}) => ({
  session_id,
  labels: { team: 'a' },
  revision: 1,
  ...more,
});

test('names rows that are missing, that no event made, and the first column that differs', () => {
  expect(
    differencesOf(
      'sessions',
      [session('a'), session('b'), session('c'), session('e')],
      [session('b', { labels: { team: 'b' } }), session('c'), session('d'), session('f')],
    ),
  ).toEqual([
    { table: 'sessions', key: 'a', column: 'missing' },
    { table: 'sessions', key: 'b', column: 'labels' },
    { table: 'sessions', key: 'd', column: 'unrecorded' },
    { table: 'sessions', key: 'e', column: 'missing' },
    { table: 'sessions', key: 'f', column: 'unrecorded' },
  ]);
});

test('names rows by all columns of their key', () => {
  const turn = { session_id: 'a', turn: 10, input: 'x' };
  expect(differencesOf('turns', [turn], [{ ...turn, input: 'y' }])).toEqual([
    { table: 'turns', key: 'a/10', column: 'input' },
  ]);
});

test('orders keys as the databases do: numbers by value, texts by their bytes', () => {
  expect(compareKeys(['a', 9], ['a', 10])).toBeLessThan(0);
  expect(compareKeys(['Z'], ['a'])).toBeLessThan(0);
  // In UTF-16 the emoji would come first.
  expect(compareKeys(['\uFF5E'], ['\u{1F600}'])).toBeLessThan(0);
  expect(compareKeys(['a', 1], ['a', 1])).toBe(0);
});
