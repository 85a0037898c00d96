import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { typeIds } from '../../../../../infra/ids/typeIds.ts';
import { createMetrics } from '../../../../../infra/metrics/metrics.ts';
import { createApp } from '../../../../../services/api/app.ts';
import type { ApiContext } from '../../../../../services/api/context.ts';
import { createLogger } from '../../../../../shared/lib/logger.ts';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';
import { sleep } from '../../../../../shared/lib/time/sleep.ts';
import { countWait, waitLimitMs } from '../../../../../shared/lib/time/waitBudget.ts';

const STORE_WAIT_MS = 5_000;
const BEYOND_MS = 60_000;

/** Serves an API whose only working route calls `readCheckpoint`. Returns the URL of that route. */
async function serve(readCheckpoint: () => Promise<undefined>) {
  const api = {
    ids: typeIds,
    clock: { now: () => Date.now() },
    logger: createLogger('silent'),
    memory: createMemoryLedger(),
    availability: () => 'up',
    corsOrigins: undefined,
    metrics: createMetrics(),
    limits: { storeWaitMs: STORE_WAIT_MS },
    logPublic: true,
    tiles: { readCheckpoint },
  } as unknown as ApiContext;
  const handle = createApp(api).callback();
  const server = createServer((request, response) => void handle(request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/log/checkpoint`,
    [Symbol.dispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

test('the calls of one request wait for STORE_WAIT_MS in all, and other requests have their own limit', async () => {
  const limits: number[] = [];
  /** Stands for two calls that wait, of which the first one takes two seconds. */
  const read = async (): Promise<undefined> => {
    limits.push(waitLimitMs(BEYOND_MS));
    countWait(performance.now() - 2_000);
    await Promise.resolve();
    limits.push(Math.round(waitLimitMs(BEYOND_MS) / 100) * 100);
    return undefined;
  };
  using service = await serve(read);
  for (let request = 0; request < 2; request += 1)
    expect((await fetch(service.url)).status).toBe(404);
  expect(limits).toEqual([STORE_WAIT_MS, 3_000, STORE_WAIT_MS, 3_000]);
});

test('what is still done after the client is gone is not limited: no one waits', async () => {
  const leaving = new AbortController();
  const { promise, resolve } = Promise.withResolvers<number[]>();
  using service = await serve(async () => {
    countWait(performance.now() - 2 * STORE_WAIT_MS);
    const limits = [waitLimitMs(BEYOND_MS)];
    leaving.abort();
    while (waitLimitMs(BEYOND_MS) === 0 && performance.now() < until) await sleep(10);
    resolve([...limits, waitLimitMs(BEYOND_MS)]);
    return undefined;
  });
  const until = performance.now() + 2_000;
  await expect(fetch(service.url, { signal: leaving.signal })).rejects.toThrow();
  expect(await promise).toEqual([0, BEYOND_MS]);
});
