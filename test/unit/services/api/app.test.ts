import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { typeIds } from '../../../../infra/ids/typeIds.ts';
import { createMetrics } from '../../../../infra/metrics/metrics.ts';
import { createHealthApp } from '../../../../services/api/app.ts';
import { createLogger } from '../../../../shared/lib/logger.ts';
import { createMemoryLedger } from '../../../../shared/lib/memory/ledger.ts';

test('a process without the API answers GET and HEAD of its health, and nothing else', async () => {
  const context = {
    ids: typeIds,
    logger: createLogger('silent'),
    memory: createMemoryLedger(),
    metrics: createMetrics(),
    availability: () => 'up',
  } as unknown as Parameters<typeof createHealthApp>[0];
  const handle = createHealthApp(context).callback();
  const server = createServer((request, response) => void handle(request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const statusOf = async (method: string, path: string) =>
    (await fetch(`${origin}${path}`, { method })).status;
  try {
    expect(await statusOf('GET', '/health/live')).toBe(200);
    expect(await statusOf('HEAD', '/health/live')).toBe(200);
    expect(await statusOf('POST', '/health/live')).toBe(404);
    expect(await statusOf('GET', '/v1/agents')).toBe(404);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});
