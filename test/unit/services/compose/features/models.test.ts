import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import pino from 'pino';
import { createMetrics } from '../../../../../infra/metrics/metrics.ts';
import { openModels } from '../../../../../services/compose/features/models.ts';
import { parseConfig } from '../../../../../shared/lib/config/config.ts';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';
import { eventually } from '../../../../support/processes/operator.ts';

const REQUESTS = 'undici:request:create';

const open = (opened: AsyncDisposableStack, options = {}) =>
  openModels({
    config: parseConfig(options),
    logger: pino({ level: 'silent' }),
    metrics: createMetrics(),
    services: ['api'],
    memory: createMemoryLedger(),
    opened,
  });

test('the start requests a completion of the built-in model, so that no run has to load the code of a call', async () => {
  const { promise: requested, resolve } = Promise.withResolvers<unknown>();
  const onRequest = (message: unknown): void => resolve((message as { request: unknown }).request);
  subscribe(REQUESTS, onRequest);
  await using opened = new AsyncDisposableStack();
  try {
    await open(opened);
    expect(await requested).toMatchObject({
      origin: 'http://offline.invalid',
      path: '/v1/chat/completions',
    });
  } finally {
    unsubscribe(REQUESTS, onRequest);
  }
});

test('the start does not wait for a provider that lists its models late', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    const answer = JSON.stringify({ data: [{ id: 'listed' }] });
    response.setHeader('content-type', 'application/json');
    void released.then(() => response.end(answer));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await using opened = new AsyncDisposableStack();
  opened.defer(() => void server.close());
  const models = await open(opened, { OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` });
  release();
  const isOffered = async (): Promise<boolean> => models.list().some(({ id }) => id === 'listed');
  expect(await eventually(isOffered, Boolean)).toBe(true);
  expect(requests).toBe(1);
});
