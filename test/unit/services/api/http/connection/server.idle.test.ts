import { once } from 'node:events';
import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import Koa from 'koa';
import { typeIds } from '../../../../../../infra/ids/typeIds.ts';
import { startServer } from '../../../../../../services/api/http/connection/server.ts';
import { createLogger } from '../../../../../../shared/lib/logger.ts';
import { rawRequest } from '../../../../../support/http/rawHttp.ts';
import { eventually } from '../../../../../support/processes/operator.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

test('an idle connection does not keep its last request in memory', async () => {
  const requests: WeakRef<object>[] = [];
  const app = new Koa();
  app.use((ctx) => {
    requests.push(new WeakRef(ctx.req));
    ctx.body = 'x';
  });
  const server = await startServer(app, {
    host: '127.0.0.1',
    port: 0,
    portOption: 'PORT',
    maxConnections: 10,
    ids: typeIds,
    logger: createLogger('silent'),
  });
  const clients = Array.from({ length: 5 }, () => connect(Number(new URL(server.url).port)));
  for (const client of clients) {
    client.write(rawRequest('GET /').repeat(2));
    for (let text = ''; text.split('HTTP/1.1 200').length < 3;)
      text += String((await once(client, 'data'))[0]);
  }
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
