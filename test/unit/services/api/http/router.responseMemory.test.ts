import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, jest, test } from '@jest/globals';
import Koa from 'koa';
import { Type } from 'typebox';
import type { RouteContext } from '../../../../../services/api/context.ts';
import { answerErrors } from '../../../../../services/api/http/middleware/errors.ts';
import { createResponseMemory } from '../../../../../services/api/http/responses/responseMemory.ts';
import { defineRoute, type Route } from '../../../../../services/api/http/route.ts';
import { agentsFeature } from '../../../../../services/api/agents/routes.ts';
import { feedFeature } from '../../../../../services/api/feed/routes.ts';
import { sessionsFeature } from '../../../../../services/api/sessions/routes.ts';
import { reportsFeature } from '../../../../../services/api/reports/routes.ts';
import { createRouter } from '../../../../../services/api/http/router.ts';
import { errorPresenter } from '../../../../../services/api/features.ts';
import { createLogger } from '../../../../../shared/lib/logger.ts';
import { KIB, MIB } from '../../../../../shared/lib/units.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';
import { eventually } from '../../../../support/processes/operator.ts';

const LOGGER = createLogger('silent');

/** Serves a PUT that answers `bytes`, with `4 * MIB` for responses. */
async function serve(bytes: number, other?: Route, services: Partial<RouteContext> = {}) {
  const memory = memoryFor('answers', 4 * MIB);
  const responseMemory = createResponseMemory(memory, 50);
  const used: number[] = [];
  const route = defineRoute({
    method: 'put',
    path: '/thing',
    operationId: 'putThing',
    summary: 'Changes it',
    access: 'open',
    query: Type.Object({}),
    data: Type.Unknown(),
    errors: [],
    bufferBytes: MIB,
    handle: () => {
      used.push(memory.usage('answers').used);
      return Promise.resolve({ data: 'x'.repeat(bytes) });
    },
  });
  const api = {
    logger: LOGGER,
    memory,
    responseMemory,
    availability: () => 'up',
    limits: { storeWaitMs: 5_000 },
    ...services,
  } as unknown as RouteContext;
  /** What was held when the handlers had run, before the response was written. */
  const heldAtEnd: number[] = [];
  const app = new Koa();
  app.use(answerErrors(LOGGER, errorPresenter));
  app.use(async (_ctx, next) => {
    await next();
    heldAtEnd.push(memory.usage('answers').used);
  });
  for (const middleware of createRouter(api, [other ?? route])) app.use(middleware);
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    memory,
    responseMemory,
    used,
    heldAtEnd,
    url: `http://127.0.0.1:${port}`,
    put: () => fetch(`http://127.0.0.1:${port}/thing`, { method: 'PUT' }),
    [Symbol.dispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

test('a change is made only once there is memory for its response', async () => {
  using service = await serve(16);
  const held = [1, 2].map(() => service.responseMemory.tryAcquire('', MIB)!);
  const refused = await service.put();
  expect([refused.status, await refused.json(), service.used]).toEqual([
    429,
    expect.objectContaining({ code: 'rate_limited', retry: 'same_key' }),
    [],
  ]);
  held[0]!.release();
  expect([(await service.put()).status, service.used]).toEqual([200, [2 * MIB]]);
  held[1]!.release();
});

test('the memory of a response is held until it is sent, and what it does not need is free', async () => {
  const bytes = 512 * KIB;
  using service = await serve(bytes);
  await (await service.put()).text();
  expect(service.heldAtEnd).toEqual([bytes + '{"success":true,"data":"","status":200}'.length]);
  await eventually(
    () => Promise.resolve(service.memory.usage('answers').used),
    (used) => used === 0,
  );
});

test.each(['replaceAgent', 'changeAgent'])('%s waits for memory before it reads', async (name) => {
  const route = agentsFeature.routes.find(({ operationId }) => operationId === name)!;
  using service = await serve(0, { ...route, access: 'open' });
  const body = JSON.stringify({ name: 'A', instruction: 'Be brief.', model: 'offline-echo' });
  const headers = { 'content-type': 'application/json' };
  const method = route.method.toUpperCase();
  const send = () => fetch(`${service.url}/v1/agents/agent_1`, { method, headers, body });
  const held = [1, 2].map(() => service.responseMemory.tryAcquire('', MIB)!);
  expect((await send()).status).toBe(429);
  held[0]!.release();
  // It gets as far as the agent, which this service does not have.
  expect((await send()).status).toBe(500);
});

test('a report waits for memory before it reads', async () => {
  const [route] = reportsFeature.routes;
  const findSession = jest.fn(() => Promise.resolve(undefined));
  using service = await serve(0, { ...route, access: 'open' }, {
    openStreams: { acquire: () => ({ release: () => undefined }) },
    readModels: { findSession },
  } as unknown as Partial<RouteContext>);
  const send = () => fetch(`${service.url}/v1/sessions/session_1/report`);
  const held = [1, 2].map(() => service.responseMemory.tryAcquire('', MIB)!);
  expect([(await send()).status, findSession.mock.calls.length]).toEqual([429, 0]);
  held[0]!.release();
  expect([(await send()).status, findSession.mock.calls.length]).toEqual([404, 1]);
});

test('a search holds little memory while it waits for the index', async () => {
  const route = sessionsFeature.routes.find(({ operationId }) => operationId === 'listSessions')!;
  const { promise: isAsked, resolve: ask } = Promise.withResolvers<void>();
  const { promise: goesOn, resolve: goOn } = Promise.withResolvers<void>();
  const held: number[] = [];
  using service = await serve(0, { ...route, access: 'open' }, {
    store: memoryKeys(),
    readAudit: { record: () => Promise.resolve() },
    readModels: {
      async indexProgress() {
        ask();
        await goesOn;
        return { generation: 1, ended: null, indexed: null, unindexed_from: null };
      },
      async listSessions() {
        held.push(service.memory.usage('answers').used);
        return { rows: [], more: false };
      },
    },
  } as unknown as Partial<RouteContext>);
  const searching = fetch(`${service.url}/v1/sessions?q=word`);
  await isAsked;
  expect(service.memory.usage('answers').used).toBe(256 * KIB);
  goOn();
  expect([(await searching).status, held]).toEqual([200, [MIB]]);
});

test('the response to HEAD waits for no memory, since it has no body', async () => {
  const bytes = 100 * KIB;
  const route = defineRoute({
    method: 'get',
    path: '/thing',
    operationId: 'getThing',
    summary: 'Reads it',
    access: 'open',
    data: Type.Unknown(),
    errors: [],
    handle: () => Promise.resolve({ data: 'x'.repeat(bytes) }),
  });
  using service = await serve(0, route);
  const held = [1, 2].map(() => service.responseMemory.tryAcquire('', MIB)!);
  const { status, headers } = await fetch(`${service.url}/thing`, { method: 'HEAD' });
  expect([status, Number(headers.get('content-length')) > bytes]).toEqual([200, true]);
  expect(service.heldAtEnd).toEqual([2 * MIB]);
  for (const permit of held) permit.release();
});

test('polls of one account do not wait for the memory of each other', async () => {
  const data = 'x'.repeat(180 * KIB);
  const event = { id: 'id', type: 'turnlog.x', key: 'k', time: '', data };
  async function* followAccount() {
    yield { items: [], cursor: 'before', caughtUp: false };
    yield { items: [{ event, cursor: 'after' }], cursor: 'after', caughtUp: false };
  }
  const route = feedFeature.routes.find(({ operationId }) => operationId === 'followEvents')!;
  const { promise: bothHavePages, resolve } = Promise.withResolvers<void>();
  let polls = 0;
  const record = (): Promise<void> => {
    polls += 1;
    if (polls === 2) resolve();
    return bothHavePages;
  };
  using service = await serve(0, { ...route, access: 'open' }, {
    feed: { followAccount },
    followers: { acquire: () => ({ release: () => undefined }) },
    readAudit: { record },
  } as unknown as Partial<RouteContext>);
  const reserve = jest.spyOn(service.memory, 'reserve');
  const poll = async () => {
    const response = await fetch(`${service.url}/v1/events?format=jsonl&limit=1`);
    return (await response.text()).length;
  };
  for (const length of await Promise.all([poll(), poll()]))
    expect(length).toBeGreaterThan(data.length);
  expect(reserve).not.toHaveBeenCalled();
});

test('small events are sent although responses hold all of the memory', async () => {
  const event = { id: 'id', type: 'turnlog.x', key: 'k', time: '', data: 'small' };
  async function* followAccount() {
    for (const cursor of ['one', 'two'])
      yield { items: [{ event, cursor }], cursor, caughtUp: false };
  }
  const route = feedFeature.routes.find(({ operationId }) => operationId === 'followEvents')!;
  using service = await serve(0, { ...route, access: 'open' }, {
    feed: { followAccount },
    followers: { acquire: () => ({ release: () => undefined }) },
    readAudit: { record: () => Promise.resolve() },
  } as unknown as Partial<RouteContext>);
  service.memory.forceReserve({ account_id: 'a', purpose: 'answers', bytes: 4 * MIB });
  const response = await fetch(`${service.url}/v1/events?format=jsonl&limit=2`);
  expect((await response.text()).trimEnd().split('\n')).toHaveLength(2);
});
