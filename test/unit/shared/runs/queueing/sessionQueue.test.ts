import { describe, expect, test } from '@jest/globals';
import { createSessionQueue } from '../../../../../shared/runs/queueing/sessionQueue.ts';

const PATIENT_MS = 60_000;
const never = new AbortController().signal;

/** Lets everything happen that does not wait for a timer. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('the session queue', () => {
  test('lets the runs of one session in one after the other, first come first served', async () => {
    const queue = createSessionQueue();
    const order: string[] = [];
    const run = async (name: string): Promise<void> => {
      const leave = await queue.acquire('s', PATIENT_MS, never);
      order.push(`${name} in`);
      await settled();
      order.push(`${name} out`);
      leave();
    };
    await Promise.all(['a', 'b', 'c'].map(run));
    expect(order).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out']);
  });

  test('keeps no session waiting for another', async () => {
    const queue = createSessionQueue();
    await queue.acquire('s', PATIENT_MS, never);
    await expect(queue.acquire('t', 0, never)).resolves.toEqual(expect.any(Function));
    await expect(queue.acquire('s', 0, never)).rejects.toMatchObject({ code: 'session_busy' });
  });

  test('answers session_busy, retriable, to who has waited for too long, and lets the next one in after all', async () => {
    const queue = createSessionQueue();
    const leave = await queue.acquire('s', PATIENT_MS, never);
    const impatient = queue.acquire('s', 1, never);
    const patient = queue.acquire('s', PATIENT_MS, never);
    await expect(impatient).rejects.toMatchObject({
      code: 'session_busy',
      retriable: true,
      retryAfterSeconds: 1,
    });
    leave();
    (await patient)();
    (await queue.acquire('s', 0, never))();
  });

  test('gives up waiting with the reason of the signal, and takes nobody else out of the line', async () => {
    const queue = createSessionQueue();
    const leave = await queue.acquire('s', PATIENT_MS, never);
    const stop = new AbortController();
    const stopped = queue.acquire('s', PATIENT_MS, stop.signal);
    const next = queue.acquire('s', PATIENT_MS, never);
    stop.abort(new Error('stop'));
    await expect(stopped).rejects.toThrow('stop');
    leave();
    (await next)();
  });

  test('does not let in who waits with a signal that aborted before', async () => {
    const queue = createSessionQueue();
    await queue.acquire('s', PATIENT_MS, never);
    await expect(
      queue.acquire('s', PATIENT_MS, AbortSignal.abort(new Error('stopped before'))),
    ).rejects.toThrow('stopped before');
  });
});
