import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, test } from '@jest/globals';
import pino from 'pino';
import { createMetrics } from '../../../../../infra/metrics/metrics.ts';
import { openModels } from '../../../../../services/compose/features/models.ts';
import { parseConfig } from '../../../../../shared/lib/config/config.ts';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';

const REQUESTS = 'undici:request:create';

test('the start requests a completion of the built-in model, so that no run has to load the code of a call', async () => {
  const { promise: requested, resolve } = Promise.withResolvers<unknown>();
  const onRequest = (message: unknown): void => resolve((message as { request: unknown }).request);
  subscribe(REQUESTS, onRequest);
  await using opened = new AsyncDisposableStack();
  try {
    await openModels({
      config: parseConfig({}),
      logger: pino({ level: 'silent' }),
      metrics: createMetrics(),
      services: ['api'],
      memory: createMemoryLedger(),
      opened,
    });
    expect(await requested).toMatchObject({
      origin: 'http://offline.invalid',
      path: '/v1/chat/completions',
    });
  } finally {
    unsubscribe(REQUESTS, onRequest);
  }
});
