import { EventEmitter } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, jest, test } from '@jest/globals';
import type { Context } from 'koa';
import {
  paceResponses,
  admitRequest,
  admitWhileConnected,
} from '../../../../../../services/api/http/middleware/pacing.ts';
import { yieldToEventLoop } from '../../../../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { waitToBegin } from '../../../../../../shared/lib/concurrency/pacedSteps.ts';

const contextOf = (path: string, account_id?: string): Context =>
  ({ path, state: { account_id }, res: new EventEmitter() }) as unknown as Context;

/** Leaves no time in this turn of the event loop, so that everything waits. */
function useUpTime(): void {
  void waitToBegin('other');
  const until = performance.now() + 3;
  while (performance.now() < until);
}

test('a request waits once', async () => {
  const ctx = contextOf('/v1/agents', 'a');
  useUpTime();
  await paceResponses(ctx, async () => {
    const waiting = admitRequest(ctx);
    expect(waiting).toBeInstanceOf(Promise);
    await waiting;
    useUpTime();
    expect(admitRequest(ctx)).toBeUndefined();
  });
});

test('a refused request is answered in its turn', async () => {
  useUpTime();
  const order: string[] = [];
  const first = waitToBegin('')!.then(() => order.push('first'));
  const refused = paceResponses(contextOf('/nothing'), () => Promise.reject(new Error('refused')));
  await expect(refused.finally(() => order.push('refused'))).rejects.toThrow('refused');
  await first;
  expect(order).toEqual(['first', 'refused']);
});

test('probes, accounts and requests without an account take turns', async () => {
  useUpTime();
  const order: string[] = [];
  const begin = async (path: string, account_id?: string): Promise<void> => {
    await admitRequest(contextOf(path, account_id));
    order.push(account_id ?? path);
  };
  const flood = Array.from({ length: 5 }, () => [begin('/nothing'), begin('/v1/agents', 'a')]);
  await Promise.all([begin('/health/live'), begin('/v1/agents', 'b'), ...flood.flat()]);
  expect(new Set(order.slice(0, 4))).toEqual(new Set(['/nothing', 'a', '/health/live', 'b']));
});

test('an account rests beside requests of others, but not beside probes', async () => {
  await setImmediate();
  let now = performance.now() + 3_600_000;
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => now);
  const isResting = async (): Promise<boolean> => {
    await yieldToEventLoop('a');
    now += 5;
    let isOver = false;
    const next = yieldToEventLoop('a').then(() => (isOver = true));
    for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    const rests = !isOver;
    now += 5;
    await next;
    return rests;
  };
  for (const path of ['/health/live', '/nothing']) await admitRequest(contextOf(path));
  await admitRequest(contextOf('/v1/agents', 'a'));
  expect(await isResting()).toBe(false);
  await admitRequest(contextOf('/v1/agents', 'b'));
  expect(await isResting()).toBe(true);
  await setImmediate();
  clock.mockRestore();
});

test('a request whose client disconnects stops waiting', async () => {
  useUpTime();
  const ctx = contextOf('/nothing');
  const waiting = admitWhileConnected(ctx);
  ctx.res.emit('close');
  await expect(waiting).rejects.toThrow('disconnected');
});

test('a request whose client disconnects while it waits keeps its result', async () => {
  useUpTime();
  const ctx = contextOf('/nothing');
  const refused = paceResponses(ctx, () => Promise.reject(new Error('refused')));
  queueMicrotask(() => queueMicrotask(() => ctx.res.emit('close')));
  await expect(refused).rejects.toThrow('refused');
});
