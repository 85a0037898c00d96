import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import Koa from 'koa';
import { startApiServer } from '../../../../../support/http/apiServer.ts';
import { rawRequest } from '../../../../../support/http/rawHttp.ts';
import { eventually } from '../../../../../support/processes/operator.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** A server of so many connections, and clients of it. */
async function serverWithClients(app: Koa, maxConnections: number, count: number) {
  const server = await startApiServer(app, maxConnections);
  const newClient = (): Socket => connect(Number(new URL(server.url).port));
  return { server, newClient, clients: Array.from({ length: count }, newClient) };
}

/** Sends requests at once, and resolves with the last of their responses. */
async function send(client: Socket, requests: number): Promise<void> {
  client.write(rawRequest('GET /').repeat(requests));
  for (let text = ''; text.split('HTTP/1.1 200').length <= requests;)
    text += String((await once(client, 'data'))[0]);
}

test('at the limit, the connections that have been idle longest close', async () => {
  const app = new Koa();
  app.use(async (ctx) => {
    if (ctx.path === '/held') await once(ctx.req.socket, 'close');
    ctx.body = 'x';
  });
  const { server, newClient, clients } = await serverWithClients(app, 6, 6);
  const [again, first, second, third, fourth, held] = clients as [Socket, ...Socket[]];
  for (const client of [again, first, second, third, fourth, held!]) await send(client!, 1);
  await send(again, 2);
  held!.write(rawRequest('GET /held'));
  const closed = [first!, second!, third!].map((client) => once(client, 'close'));
  const dropped = newClient().on('error', () => undefined);
  await once(dropped, 'close');
  await Promise.all(closed);
  await send(again, 1);
  await send(fourth!, 1);
  expect(held!.closed).toBe(false);
  await send(newClient(), 1);
  for (const client of clients) client.destroy();
  server.destroyConnections();
  await server.close();
});

test('an idle connection does not keep its last request in memory', async () => {
  const requests: WeakRef<object>[] = [];
  const app = new Koa();
  app.use((ctx) => {
    requests.push(new WeakRef(ctx.req));
    ctx.body = 'x';
  });
  const { server, clients } = await serverWithClients(app, 10, 5);
  for (const client of clients) await send(client, 2);
  expect(requests).toHaveLength(2 * clients.length);
  const kept = await eventually(
    async () => {
      collectGarbage();
      return requests.filter((request) => request.deref() !== undefined).length;
    },
    (count) => count === 0,
  );
  expect(kept).toBe(0);
  expect(clients.every(({ closed }) => !closed)).toBe(true);
  for (const client of clients) client.destroy();
  await server.close();
});
