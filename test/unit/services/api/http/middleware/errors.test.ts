import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import Koa from 'koa';
import { errorPresenter } from '../../../../../../services/api/features.ts';
import { answerErrors } from '../../../../../../services/api/http/middleware/errors.ts';
import { TurnlogError } from '../../../../../../shared/lib/errors/turnlogError.ts';
import { createLogger } from '../../../../../../shared/lib/logger.ts';

/** Serves a middleware, which throws, at a URL, and keeps what is logged at a level. */
async function serve(level: 'warn' | 'error', middleware: Koa.Middleware) {
  const lines: object[] = [];
  const logger = createLogger('silent');
  logger[level] = (fields: object) => void lines.push(fields);
  const app = new Koa();
  app.use(answerErrors(logger, errorPresenter));
  app.use(middleware);
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { lines, server, url };
}

test('however many requests are refused, the log says it now and then', async () => {
  const { lines, server, url } = await serve('warn', () => {
    throw new TurnlogError('overloaded', 'Too much.', { retryAfterSeconds: 2 });
  });
  for (let times = 0; times < 20; times += 1) {
    const reply = await fetch(url);
    expect(reply.status).toBe(503);
    expect(reply.headers.get('retry-after')).toBe('2');
    await reply.text();
  }
  server.close();
  expect(lines).toEqual([expect.objectContaining({ requests: 1, code: 'overloaded' })]);
});

test('a failure is logged, unless the log has it with its turn', async () => {
  const { lines, server, url } = await serve('warn', (ctx) => {
    const error = new TurnlogError('tool_error', 'The tools are not known yet.');
    throw ctx.path === '/turn' ? error.withTurn({ session_id: 'session_1', turn: 1 }) : error;
  });
  for (const path of ['/turn', '/nothing']) await (await fetch(`${url}${path}`)).text();
  server.close();
  expect(lines).toEqual([expect.objectContaining({ code: 'tool_error', path: '/nothing' })]);
});

test('a defect is logged with its stack once for each route, however many requests reach it', async () => {
  const defect = new RangeError('Maximum call stack size exceeded');
  const { lines, server, url } = await serve('error', (ctx) => {
    ctx.state['route'] = { operationId: ctx.path.slice(1) };
    throw defect;
  });
  for (let times = 0; times < 20; times += 1)
    for (const operation of ['createAgent', 'replaceAgent']) {
      const reply = await fetch(`${url}/${operation}`);
      expect(reply.status).toBe(500);
      await reply.text();
    }
  server.close();
  expect(lines).toEqual(
    ['/createAgent', '/replaceAgent'].map((path) =>
      expect.objectContaining({ requests: 1, code: 'internal_error', err: defect, path }),
    ),
  );
});
