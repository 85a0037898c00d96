import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { createFailedLogins, networkOf } from '../../../services/api/failedLogins.ts';
import type { Logger } from '../../../shared/logger.ts';

let lines: Record<string, unknown>[];
const logger = { warn: (fields: Record<string, unknown>) => lines.push(fields) };
const failed = () => createFailedLogins(logger as unknown as Logger);
const from = (address: string, key_id?: string) => ({ address, key_id, request_id: 'r' });

beforeEach(() => {
  lines = [];
  jest.useFakeTimers();
});
afterEach(() => void jest.useRealTimers());

test('each failure is counted in a line of its address, ten seconds after the one before at the earliest', async () => {
  const login = failed();
  for (let n = 0; n < 5; n += 1)
    await expect(login(from('10.0.0.1', 'key_1'))).rejects.toMatchObject({ code: 'unauthorized' });
  await expect(login(from('10.0.0.1', 'key_2'))).rejects.toThrow();
  await expect(login(from('10.0.0.2'))).rejects.toMatchObject({ code: 'unauthorized' });
  expect(lines.map(({ address, failures }) => [address, failures])).toEqual([
    ['10.0.0.1', 1],
    ['10.0.0.2', 1],
  ]);
  expect(lines[0]).toMatchObject({ key_id: 'key_1', request_id: 'r' });
  jest.advanceTimersByTime(9_999);
  expect(lines.length).toBe(2);
  jest.advanceTimersByTime(1);
  expect(lines.slice(2)).toEqual([
    expect.objectContaining({ address: '10.0.0.1', failures: 5, key_id: 'key_2' }),
  ]);
  jest.advanceTimersByTime(60_000);
  expect(lines.length).toBe(3);
});

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['::ffff:10.1.2.3', '10.1.2.3'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['', ''],
])('an address is counted with its network: %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
