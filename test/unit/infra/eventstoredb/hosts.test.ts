import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createHosts, type Hosts } from '../../../../infra/eventstoredb/hosts.ts';

const SEED = { address: 'seed', port: 2113 };
const host = (number: number) => ({ address: `node-${number}`, port: 2113 });

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** How often a host is tried that fails each time, when it is tried as soon as it may be. */
function tries(hosts: Hosts, milliseconds: number, refused: boolean): number[] {
  const times: number[] = [];
  for (let time = 0; time < milliseconds; time += 10) {
    if (hosts.isDue(SEED)) {
      times.push(time);
      hosts.failed(SEED, 'It does not work.', refused);
    }
    jest.advanceTimersByTime(10);
  }
  return times;
}

const gaps = (times: readonly number[]): number[] =>
  times.slice(1).map((time, index) => time - times[index]!);

describe('a host that can not be used', () => {
  test('is tried at once, then ever less often, at most once in 5 s', () => {
    const between = gaps(tries(createHosts([SEED]), 60_000, false));
    expect(between[0]).toBeLessThan(400);
    expect(between.slice(5).every((gap) => gap >= 5_000 && gap <= 6_300)).toBe(true);
  });

  test('is tried about once a second where it only refuses connections', () => {
    const between = gaps(tries(createHosts([SEED]), 20_000, true));
    expect(between.slice(3).every((gap) => gap >= 1_000 && gap <= 1_300)).toBe(true);
  });

  test('is tried at once when something new is known of it', () => {
    const hosts = createHosts([SEED]);
    tries(hosts, 10_000, false);
    expect(hosts.isDue(SEED)).toBe(false);
    hosts.forgive(SEED);
    expect(hosts.due()).toEqual([SEED]);
    expect(hosts.troubles()).toEqual(['It does not work.']);
  });
});

test('keeps no more than 32 hosts, and the seeds among them', () => {
  const hosts = createHosts([SEED]);
  for (let number = 0; number < 1_000; number += 1) hosts.learn(host(number));
  const known = hosts.due().map(({ address }) => address);
  expect(known).toHaveLength(32);
  expect(known).toEqual(expect.arrayContaining(['seed', 'node-999']));
});
