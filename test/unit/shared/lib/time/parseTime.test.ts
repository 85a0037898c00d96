import { expect, test } from '@jest/globals';
import { parseDate, parseTime, TIME_PATTERN } from '../../../../../shared/lib/time/parseTime.ts';

const PATTERN = new RegExp(TIME_PATTERN);

test.each([
  ['2026-11-20T09:30:00Z', '2026-11-20T09:30:00.000Z'],
  ['2026-11-20t09:30:00.25z', '2026-11-20T09:30:00.250Z'],
  ['2026-11-20T09:30:00.123456789Z', '2026-11-20T09:30:00.123Z'],
  ['2026-11-20T09:30:00+02:00', '2026-11-20T07:30:00.000Z'],
  ['2026-11-20 09:30:00-05:30', '2026-11-20T15:00:00.000Z'],
  ['2026-11-20T09:30:00-00:00', '2026-11-20T09:30:00.000Z'],
  ['2026-01-01T00:30:00+01:00', '2025-12-31T23:30:00.000Z'],
  ['2026-11-20', '2026-11-20T00:00:00.000Z'],
  ['2024-02-29', '2024-02-29T00:00:00.000Z'],
  ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00.000Z'],
  ['0001-01-01', '0001-01-01T00:00:00.000Z'],
  ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
  ['2016-12-31T18:59:60.5-05:00', '2017-01-01T00:00:00.000Z'],
  // What `+` in a query that is not encoded becomes.
  ['2026-11-20T09:30:00 02:00', '2026-11-20T07:30:00.000Z'],
])('reads %s as %s', (text, iso) => {
  expect(new Date(parseTime(text)!).toISOString()).toBe(iso);
  if (!/^0|:60/.test(text)) expect(text).toMatch(PATTERN);
});

test.each([
  '2026-02-30',
  '2026-02-29',
  '2100-02-29T00:00:00Z',
  '2026-04-31T10:00:00+02:00',
  '2026-00-10',
  '2026-13-01',
  '2026-11-00',
  '2026-11-32',
  '2026-11-20T24:00:00Z',
  '2026-11-20T23:60:00Z',
  '2026-11-20T23:59:61Z',
  '2026-11-20T12:00:60Z',
  '2026-11-20T09:30:00+24:00',
  '2026-11-20T09:30:00+02:60',
  '2026-11-20T09:30:00+0200',
  '2026-11-20T09:30:00',
  '2026-11-20T09:30Z',
  '2026-11-20T09:30:00.Z',
  '20261120',
  '2026-11-20 ',
  '+02026-11-20',
  '0000-01-01T00:00:00+01:00',
  '9999-12-31T23:59:59-01:00',
  'yesterday',
  '1700000000',
  '',
])('rejects %j', (text) => {
  expect(parseTime(text)).toBeUndefined();
  if (!text.startsWith('9999')) expect(text).not.toMatch(PATTERN);
});

test('the pattern has the days that exist, in every year', () => {
  for (let year = 1_890; year < 2_210; year += 1)
    for (let month = 1; month <= 12; month += 1)
      for (const day of [28, 29, 30, 31, 32]) {
        const date = `${year}-${String(month).padStart(2, '0')}-${day}`;
        expect([date, PATTERN.test(date)]).toEqual([date, parseTime(date) !== undefined]);
      }
});

test('reads a date alone as one', () => {
  expect(parseDate('2026-11-20')).toBe(Date.UTC(2026, 10, 20));
  expect(parseDate('2026-11-20T00:00:00Z')).toBeUndefined();
});
