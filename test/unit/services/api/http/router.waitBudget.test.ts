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
import { countWait, waitLimitMs } from '../../../../../shared/lib/time/waitBudget.ts';

const STORE_WAIT_MS = 5_000;
const BEYOND_MS = 60_000;

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
    tiles: { readCheckpoint: read },
  } as unknown as ApiContext;
  const handle = createApp(api).callback();
  const server = createServer((request, response) => void handle(request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/log/checkpoint`;
    for (let request = 0; request < 2; request += 1) expect((await fetch(url)).status).toBe(404);
  } finally {
    server.close();
    server.closeAllConnections();
  }
  expect(limits).toEqual([STORE_WAIT_MS, 3_000, STORE_WAIT_MS, 3_000]);
});
