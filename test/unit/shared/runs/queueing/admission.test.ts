import { describe, expect, test } from '@jest/globals';
import { createAdmission } from '../../../../../shared/runs/queueing/admission.ts';
import { LIMITS } from '../../../../../shared/limits.ts';

const never = new AbortController().signal;
const PATIENT_MS = 60_000;
const admission = (runs: number, bytes = 1_000) =>
  createAdmission({
    all: { permits: runs, bytes },
    share: { permits: runs / 2, bytes: bytes / 2 },
  });

describe('admission', () => {
  test('answers rate_limited to an account over its share, and overloaded where the process is full', async () => {
    const { arrive } = admission(4);
    const enter = (account: string) => arrive(account, 1, {}).enter(1, 0, never);
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
    const { arrive } = admission(5);
    const enter = (account: string, limits: object) =>
      arrive(account, 1, limits).enter(1, 0, never);
    await enter('a', { runs: 1 });
    await expect(enter('a', { runs: 1 })).rejects.toMatchObject({ code: 'rate_limited' });
    await enter('b', { runs: 100 });
    await enter('b', { runs: 100 });
    await expect(enter('b', { runs: 100 })).rejects.toMatchObject({ code: 'rate_limited' });
  });

  test('bounds those who have no place, in number and in bytes, of an account and of all', () => {
    const { arrive, waiting } = admission(4, 1_000);
    arrive('a', 400, {});
    expect(() => arrive('a', 400, {})).toThrow(expect.objectContaining({ code: 'rate_limited' }));
    arrive('b', 500, {});
    expect(() => arrive('c', 101, {})).toThrow(expect.objectContaining({ code: 'overloaded' }));
    const { arrive: arriveIn, waiting: waitingIn } = admission(4, 1_000);
    for (let run = 0; run < LIMITS.run.waiting / 2; run += 1) arriveIn('a', 0, {});
    expect(() => arriveIn('a', 0, {})).toThrow(expect.objectContaining({ code: 'rate_limited' }));
    expect([waiting(), waitingIn()]).toEqual([2, LIMITS.run.waiting / 2]);
  });

  test('leaves nothing behind, however a run ends', async () => {
    const { arrive, inFlight, waiting } = admission(2);
    const stop = new AbortController();
    const first = arrive('a', 1, {});
    await first.enter(1, PATIENT_MS, never);
    const second = arrive('a', 1, {});
    const stopped = second.enter(1, PATIENT_MS, stop.signal);
    expect([inFlight(), waiting()]).toEqual([1, 1]);
    stop.abort(new Error('stop'));
    await expect(stopped).rejects.toThrow('stop');
    second.leave();
    first.leave();
    first.leave();
    expect([inFlight(), waiting()]).toEqual([0, 0]);
  });

  test('a run whose prompt grows beyond what is left gives its place back while it waits for a larger one', async () => {
    const { arrive, inFlight } = admission(10, 200);
    const small = arrive('a', 1, {});
    const growing = arrive('a', 1, {});
    await small.enter(60, 0, never);
    await growing.enter(10, 0, never);
    expect([growing.grow(40), growing.grow(41)]).toEqual([true, false]);
    const larger = growing.enter(90, PATIENT_MS, never);
    expect(inFlight()).toBe(1);
    small.leave();
    await larger;
    expect(growing.grow(90)).toBe(true);
  });
});
