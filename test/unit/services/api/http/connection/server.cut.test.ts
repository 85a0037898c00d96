import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from '@jest/globals';
import Koa from 'koa';
import { resolvesWithin } from '../../../../../../shared/lib/time/resolvesWithin.ts';
import { startApiServer } from '../../../../../support/http/apiServer.ts';

test('a cut ends a refused CONNECT too, whose client keeps the connection open: stopping must not wait for it', async () => {
  const server = await startApiServer(new Koa());
  const client = connect({ port: Number(new URL(server.url).port), allowHalfOpen: true });
  client.on('error', () => undefined);
  client.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
  const [answer] = (await once(client, 'data')) as [Buffer];
  const closed = server.close();
  server.destroyConnections();
  const isClosed = await resolvesWithin(closed, 1_000);
  client.destroy();
  expect(String(answer)).toMatch(/^HTTP\/1.1 405 /);
  expect(isClosed).toBe(true);
});
