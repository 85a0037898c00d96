import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import {
  createHostPool,
  type HostPool,
} from '../../../../../infra/eventstoredb/connection/discoveryState.ts';

const SEED = { address: 'seed', port: 2113 };
const host = (number: number) => ({ address: `node-${number}`, port: 2113 });

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** The times of the attempts at a host that always fails and is tried whenever it is due. */
function attemptTimes(hosts: HostPool, durationMs: number, isRefused: boolean): number[] {
  const times: number[] = [];
  for (let time = 0; time < durationMs; time += 10) {
    if (hosts.isDue(SEED)) {
      times.push(time);
      hosts.recordFailure(SEED, 'It does not work.', isRefused);
    }
    jest.advanceTimersByTime(10);
  }
  return times;
}

const gapsOf = (times: readonly number[]): number[] =>
  times.slice(1).map((time, index) => time - times[index]!);

describe('an unusable host', () => {
  test('is tried at once, then with growing pauses of at most 5 s', () => {
    const gaps = gapsOf(attemptTimes(createHostPool([SEED]), 60_000, false));
    expect(gaps[0]).toBeLessThan(400);
    expect(gaps.slice(5).every((gap) => gap >= 5_000 && gap <= 6_300)).toBe(true);
  });

  test('is tried about once a second while it refuses connections', () => {
    const gaps = gapsOf(attemptTimes(createHostPool([SEED]), 20_000, true));
    expect(gaps.slice(3).every((gap) => gap >= 1_000 && gap <= 1_300)).toBe(true);
  });

  test('is due at once after a reset of its backoff, and keeps its trouble', () => {
    const hosts = createHostPool([SEED]);
    attemptTimes(hosts, 10_000, false);
    expect(hosts.isDue(SEED)).toBe(false);
    hosts.resetBackoff(SEED);
    expect(hosts.dueHosts()).toEqual([SEED]);
    expect(hosts.troubles()).toEqual(['It does not work.']);
  });
});

test('keeps at most 32 hosts, including the seeds', () => {
  const hosts = createHostPool([SEED]);
  for (let number = 0; number < 1_000; number += 1) hosts.add(host(number));
  const addresses = hosts.dueHosts().map(({ address }) => address);
  expect(addresses).toHaveLength(32);
  expect(addresses).toEqual(expect.arrayContaining(['seed', 'node-999']));
});
