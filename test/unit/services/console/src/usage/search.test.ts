import { expect, test } from '@jest/globals';
import {
  daysOf,
  eachDay,
  parseUsageSearch,
} from '../../../../../../services/console/src/usage/search.ts';

const NOW = Date.parse('2026-03-01T23:59:59.999Z');

test('takes from an address only what usage can be shown by', () => {
  const search = { days: 7, from: '2026-01-01', by: 'key', agent_id: 'agent_1', kind: 'replay' };
  expect(parseUsageSearch(search)).toEqual(search);
  expect(
    parseUsageSearch({
      days: 8,
      from: 'yesterday',
      to: '2026-13-01',
      by: 'month',
      model: '',
      kind: 'both',
      other: 1,
    }),
  ).toEqual({});
});

test('counts days back from the last one, in UTC', () => {
  expect(daysOf({}, NOW)).toEqual({ from: '2026-01-31', to: '2026-03-01' });
  expect(daysOf({ days: 7 }, NOW)).toEqual({ from: '2026-02-23', to: '2026-03-01' });
  expect(daysOf({ from: '2026-02-01' }, NOW)).toEqual({ from: '2026-02-01', to: '2026-03-01' });
  expect(daysOf({ days: 7, to: '2026-01-03' }, NOW)).toEqual({
    from: '2025-12-28',
    to: '2026-01-03',
  });
});

test('names each day of a range, both ends included, unless there are too many', () => {
  expect(eachDay({ from: '2026-02-27', to: '2026-03-01' })).toEqual([
    '2026-02-27',
    '2026-02-28',
    '2026-03-01',
  ]);
  expect(eachDay({ from: '2026-03-01', to: '2026-02-01' })).toEqual([]);
  expect(eachDay({ from: '2020-01-01', to: '2026-01-01' })).toBeUndefined();
});
