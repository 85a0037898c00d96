import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, jest, test } from '@jest/globals';
import pino from 'pino';
import { createMetrics } from '../../../../../infra/metrics/metrics.ts';
import { openModels } from '../../../../../services/compose/features/models.ts';
import { requireSupported } from '../../../../../shared/agents/catalogue.ts';
import { parseConfig } from '../../../../../shared/lib/config/config.ts';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';
import type { ChatModels } from '../../../../../shared/ports/chatModel.ts';
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

/** Opens the models of a provider that lists one, or refuses, once it is released. */
async function openListing(
  opened: AsyncDisposableStack,
  released: Promise<void>,
  status = (_request: number) => 200,
) {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    response.statusCode = status(requests);
    response.setHeader('content-type', 'application/json');
    const answer = JSON.stringify({ data: [{ id: 'listed' }] });
    void released.then(() => response.end(answer));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  opened.defer(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const models = await open(opened, { OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` });
  const requireModel = (model: string): void =>
    requireSupported({ models, toolbox: { list: () => [] } } as never, model, undefined);
  return { models, requireModel, requests: () => requests };
}

const offered = ({ find }: Pick<ChatModels, 'find'>) =>
  eventually(async () => find('listed'), Boolean);

test('the start does not wait for a provider that lists its models late; until then, an unknown model is unavailable', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await using opened = new AsyncDisposableStack();
  const { models, requireModel, requests } = await openListing(opened, released);
  expect(() => requireModel('listed')).toThrow(
    expect.objectContaining({ code: 'store_unavailable', retriable: true }),
  );
  release();
  await offered(models);
  expect(() => requireModel('listed')).not.toThrow();
  expect(() => requireModel('other')).toThrow(expect.objectContaining({ retriable: false }));
  expect(requests()).toBe(1);
});

test('models that a provider lists promptly are offered from the start', async () => {
  await using opened = new AsyncDisposableStack();
  const { models } = await openListing(opened, Promise.resolve());
  expect(models.find('listed')).toBeDefined();
});

test('an unknown model is unavailable while a model server that starts at the same time answers 502', async () => {
  await using opened = new AsyncDisposableStack();
  const { models, requireModel } = await openListing(opened, Promise.resolve(), (request) =>
    request === 1 ? 502 : 200,
  );
  const unavailable = expect.objectContaining({ code: 'store_unavailable' });
  expect(() => requireModel('listed')).toThrow(unavailable);
  await offered(models);
  expect(() => requireModel('listed')).not.toThrow();
});

test('an unknown model is unsupported once the provider has answered that it lists none', async () => {
  await using opened = new AsyncDisposableStack();
  const { requireModel } = await openListing(opened, Promise.resolve(), () => 404);
  const unsupported = expect.objectContaining({ code: 'model_not_supported' });
  expect(() => requireModel('listed')).toThrow(unsupported);
});

test('an unknown model is unsupported a minute after the start, although the provider is away', async () => {
  await using opened = new AsyncDisposableStack();
  const { requireModel } = await openListing(opened, Promise.resolve(), () => 502);
  const now = performance.now();
  const clock = jest.spyOn(performance, 'now');
  try {
    clock.mockReturnValue(now + 50_000);
    expect(() => requireModel('listed')).toThrow(/not known yet/);
    clock.mockReturnValue(now + 61_000);
    expect(() => requireModel('listed')).toThrow(/not supported/);
  } finally {
    clock.mockRestore();
  }
});
