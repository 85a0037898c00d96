import { describe, expect, test } from '@jest/globals';
import { createAdmissionControl } from '../../../../../shared/runs/queueing/admissionControl.ts';
import { memoryForRuns } from '../../../../support/builders/memory.ts';
import type { AccountLimits } from '../../../../../shared/accounts/events.ts';
import { LIMITS } from '../../../../../shared/limits.ts';

const never = new AbortController().signal;
const PATIENT_MS = 60_000;
const admission = (runs: number, bytes = 1_000) =>
  createAdmissionControl(memoryForRuns({ permits: runs, bytes }));

describe('admission', () => {
  test('answers rate_limited to an account over its share, and overloaded where the process is full', async () => {
    const { enqueue } = admission(4);
    const enter = (account: string) => enqueue(account, 1, {}).acquire(1, 0, never);
    await enter('a');
    await enter('a');
    const refused = { retriable: true, retryAfterSeconds: expect.any(Number) };
    await expect(enter('a')).rejects.toMatchObject({ code: 'rate_limited', ...refused });
    await enter('b');
    await expect(enter('b')).rejects.toMatchObject({ code: 'rate_limited', ...refused });
    await enter('c');
    await expect(enter('d')).rejects.toMatchObject({ code: 'overloaded', ...refused });
  });

  test('obeys the limits of an account, and none that is beyond its share', async () => {
    const { enqueue } = admission(5);
    const enter = (account: string, limits: object) =>
      enqueue(account, 1, limits).acquire(1, 0, never);
    await enter('a', { runs: 1 });
    await expect(enter('a', { runs: 1 })).rejects.toMatchObject({ code: 'rate_limited' });
    await enter('b', { runs: 100 });
    await enter('b', { runs: 100 });
    await expect(enter('b', { runs: 100 })).rejects.toMatchObject({ code: 'rate_limited' });
  });

  test('bounds those who have no place, in number and in bytes, of an account and of all', () => {
    const { enqueue, waitingCount } = admission(4, 1_000);
    for (let run = 0; run < 2; run += 1) enqueue('a', 250, {});
    expect(() => enqueue('a', 1, {})).toThrow(expect.objectContaining({ code: 'rate_limited' }));
    enqueue('b', 250, {});
    expect(() => enqueue('c', 126, {})).toThrow(expect.objectContaining({ code: 'overloaded' }));
    const { enqueue: arriveIn, waitingCount: waitingIn } = admission(4, 1_000);
    for (let run = 0; run < LIMITS.run.waiting / 2; run += 1) arriveIn('a', 0, {});
    expect(() => arriveIn('a', 0, {})).toThrow(expect.objectContaining({ code: 'rate_limited' }));
    expect([waitingCount(), waitingIn()]).toEqual([3, LIMITS.run.waiting / 2]);
  });

  test('leaves nothing behind, however a run ends', async () => {
    const { enqueue, activeCount, waitingCount } = admission(2);
    const stop = new AbortController();
    const first = enqueue('a', 1, {});
    await first.acquire(1, PATIENT_MS, never);
    const second = enqueue('a', 1, {});
    const stopped = second.acquire(1, PATIENT_MS, stop.signal);
    expect([activeCount(), waitingCount()]).toEqual([1, 1]);
    stop.abort(new Error('stop'));
    await expect(stopped).rejects.toThrow('stop');
    second.release();
    first.release();
    first.release();
    expect([activeCount(), waitingCount()]).toEqual([0, 0]);
  });

  test('a run whose prompt grows beyond what is left gives its place back while it waits for a larger one', async () => {
    const { enqueue, activeCount } = admission(10, 200);
    const small = enqueue('a', 1, {});
    const growing = enqueue('a', 1, {});
    await small.acquire(50, 0, never);
    await growing.acquire(10, 0, never);
    expect([small.resize(60), growing.resize(40), growing.resize(41)]).toEqual([true, true, false]);
    const larger = growing.acquire(50, PATIENT_MS, never);
    expect(activeCount()).toBe(1);
    small.release();
    await larger;
    expect(growing.resize(90)).toBe(true);
  });

  test('refuses a prompt that an account could never have, and one beyond its own limit', async () => {
    const { enqueue, activeCount } = admission(10, 4_000);
    const enter = (bytes: number, limits: AccountLimits = {}) =>
      enqueue('a', 1, limits).acquire(bytes, 0, never);
    await expect(enter(1_001)).rejects.toMatchObject({ code: 'payload_too_large' });
    await expect(enter(6, { prompt_bytes: 10 })).rejects.toMatchObject({
      code: 'payload_too_large',
    });
    expect(activeCount()).toBe(0);
    await enter(1_000);
    await enter(10, { prompt_bytes: 2_000 });
  });

  test.each([[{}], [{ prompt_bytes: 800 }], [{ prompt_bytes: 8_000 }]])(
    'leaves room for the results of tools beside the largest prompt, with the limits %j',
    async (limits) => {
      const { enqueue } = admission(10, 4_000);
      const permit = enqueue('a', 1, limits);
      const { largestPrompt } = permit;
      await permit.acquire(largestPrompt, 0, never);
      expect(permit.resize(2 * largestPrompt)).toBe(true);
    },
  );

  test('a large prompt leaves room for the run of another account', async () => {
    const { enqueue } = admission(10, 4_000);
    for (let run = 0; run < 2; run += 1) await enqueue('a', 1, {}).acquire(1_000, 0, never);
    await expect(enqueue('a', 1, {}).acquire(1, 0, never)).rejects.toMatchObject({
      code: 'rate_limited',
    });
    await enqueue('b', 1, {}).acquire(1_000, 0, never);
  });

  test('a run that waits holds its own texts only, whatever its history needs', async () => {
    const memory = memoryForRuns({ permits: 10, bytes: 4_000 });
    const { enqueue } = createAdmissionControl(memory);
    for (let run = 0; run < 2; run += 1) await enqueue('a', 1, {}).acquire(1_000, 0, never);
    const waiting = enqueue('a', 1, {});
    waiting.hold(7);
    const entered = waiting.acquire(900, 0, never);
    expect(memory.usage('waitingRuns').used).toBe(7);
    await expect(entered).rejects.toMatchObject({ code: 'rate_limited' });
  });
});
