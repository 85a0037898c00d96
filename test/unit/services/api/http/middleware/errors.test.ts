import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import Koa from 'koa';
import { errorPresenter } from '../../../../../../services/api/features.ts';
import { answerErrors } from '../../../../../../services/api/http/middleware/errors.ts';
import { TurnlogError } from '../../../../../../shared/lib/errors/turnlogError.ts';
import { createLogger } from '../../../../../../shared/lib/logger.ts';

test('however many requests are refused, the log says it now and then', async () => {
  const warnings: object[] = [];
  const logger = createLogger('silent');
  logger.warn = (fields: object) => void warnings.push(fields);
  const app = new Koa();
  app.use(answerErrors(logger, errorPresenter));
  app.use(() => {
    throw new TurnlogError('overloaded', 'Too much.', { retryAfterSeconds: 2 });
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (let times = 0; times < 20; times += 1) {
    const reply = await fetch(url);
    expect(reply.status).toBe(503);
    expect(reply.headers.get('retry-after')).toBe('2');
    await reply.text();
  }
  server.close();
  expect(warnings).toEqual([expect.objectContaining({ requests: 1, code: 'overloaded' })]);
});
