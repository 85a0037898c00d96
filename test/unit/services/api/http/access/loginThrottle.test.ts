import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import {
  createLoginThrottle,
  networkOf,
} from '../../../../../../services/api/http/access/loginThrottle.ts';
import type { TurnlogError } from '../../../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../../../shared/limits.ts';
import type { Logger } from '../../../../../../shared/lib/logger.ts';

let lines: Record<string, unknown>[];
const logger = { warn: (fields: Record<string, unknown>) => lines.push(fields) };
const failed = () => createLoginThrottle(logger as unknown as Logger);
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

test('an address that failed ten thousand times is answered at once again a minute later', async () => {
  const login = failed();
  for (let n = 0; n < 10_000; n += 1) void login(from('10.0.0.1')).catch(() => undefined);
  jest.advanceTimersByTime(60_000);
  let code: unknown;
  void login(from('10.0.0.1')).catch((error: TurnlogError) => (code = error.code));
  // What waits for no timer is there after a few of these.
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
  expect(code).toBe('unauthorized');
});

test('of all addresses together, no more failed logins are held than may be', async () => {
  const login = failed();
  const { held } = LIMITS.logins;
  const codes: string[] = [];
  /** Ten failures without a delay, and one that is held. */
  const failFrom = (address: string): void => {
    for (let n = 0; n < 11; n += 1)
      void login(from(address)).catch(({ code }: TurnlogError) => codes.push(code));
  };
  for (let n = 0; n <= held; n += 1) failFrom(`10.0.${n >> 8}.${n & 255}`);
  await jest.advanceTimersByTimeAsync(0);
  expect(codes.filter((code) => code === 'rate_limited')).toHaveLength(1);
  expect(codes).toHaveLength(10 * (held + 1) + 1);
});

test('addresses beyond those that are told apart leave nothing behind, and what they did is told', async () => {
  const login = failed();
  for (const address of ['10.0.0.1', '10.0.0.1'])
    await expect(login(from(address))).rejects.toThrow();
  const { addresses } = LIMITS.logins;
  for (let n = 0; n < 2 * addresses; n += 1)
    await login(from(`2001:db8:${(n >> 8).toString(16)}:${(n & 255).toString(16)}::1`)).catch(
      () => 0,
    );
  expect(jest.getTimerCount()).toBe(addresses);
  expect(lines.filter(({ address }) => address === '10.0.0.1')).toHaveLength(2);
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
