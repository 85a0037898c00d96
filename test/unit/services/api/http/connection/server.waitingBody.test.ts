import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import Koa from 'koa';
import { KIB } from '../../../../../../shared/lib/units.ts';
import { startApiServer } from '../../../../../support/http/apiServer.ts';

test('of a body that waits for its turn, one read of the connection is in memory', async () => {
  const arrived = Promise.withResolvers<Koa.Context['req']>();
  const app = new Koa();
  app.use(async ({ req }) => {
    arrived.resolve(req);
    await once(req.socket, 'close');
  });
  const server = await startApiServer(app);
  const client = connect(Number(new URL(server.url).port));
  client.on('error', () => undefined);
  client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n');
  client.write(Buffer.alloc(1_000_000));
  const request = await arrived.promise;
  while (request.readableLength < 16 * KIB) await sleep(10);
  await sleep(200);
  expect(request.readableLength).toBeLessThanOrEqual(64 * KIB);
  client.destroy();
  server.destroyConnections();
  await server.close();
});
