import { once } from 'node:events';
import { request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import Koa from 'koa';
import { createResponseMemory } from '../../../../../../services/api/http/responses/responseMemory.ts';
import { compressResponses } from '../../../../../../services/api/http/middleware/compressed.ts';
import { LIMITS } from '../../../../../../shared/limits.ts';
import { memoryFor } from '../../../../../support/builders/memory.ts';

test('a compressor whose client left before the answer was made holds nothing', async () => {
  const { compressorBytes } = LIMITS.http;
  const answers = createResponseMemory(memoryFor('answers', 4 * compressorBytes));
  const app = new Koa();
  const answered = Promise.withResolvers<void>();
  app.use(async (_ctx, next) => {
    await next();
    answered.resolve();
  });
  app.use(compressResponses(answers));
  app.use(async (ctx) => {
    asked.destroy();
    await once(ctx.res, 'close');
    ctx.body = 'x'.repeat(10_000);
  });
  const server: Server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const asked = request({ port, headers: { 'accept-encoding': 'gzip' } });
  asked.on('error', () => undefined).end();
  try {
    await answered.promise;
    expect(answers.tryAcquire('', compressorBytes)).toBeDefined();
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
