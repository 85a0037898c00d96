import { once } from 'node:events';
import { request, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import Koa from 'koa';
import type { RouteContext } from '../../../../../services/api/context.ts';
import { routes } from '../../../../../services/api/features.ts';
import { compressResponses } from '../../../../../services/api/http/middleware/compressed.ts';
import { createResponseMemory } from '../../../../../services/api/http/responses/responseMemory.ts';
import { SLICE_BYTES } from '../../../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';
import { turnsDuring } from '../../../../support/fakes/loopTurns.ts';

const newContext = () =>
  ({
    catalogue: { models: { list: () => [] }, toolbox: { list: () => [] } },
    version: 'test',
  }) as unknown as RouteContext;
const route = routes.find(({ path }) => path === '/openapi.json')!;

test('the document is built in steps of the event loop, once for concurrent requests', async () => {
  const context = newContext();
  const respond = async (): Promise<Buffer> => {
    const ctx = { query: {}, get: () => '', set: () => undefined } as unknown as Koa.Context;
    await route.handle(context, {} as never, ctx);
    return ctx.body as Buffer;
  };
  const bodies = new Set<Buffer>();
  const turns = await turnsDuring(async () => {
    for (const body of await Promise.all([respond(), respond(), respond()])) bodies.add(body);
  });
  expect(bodies.size).toBe(1);
  const [body] = bodies;
  // About every fifth look at the time before an operation yields for four turns, and so does each
  // slice of the text and of the longer indented one.
  const yields = routes.length / 6 + (2 * body!.length) / SLICE_BYTES;
  expect(turns).toBeGreaterThan(4 * yields);
});

test('the document is compressed once for all its responses', async () => {
  const context = newContext();
  const bodies: unknown[] = [];
  const app = new Koa();
  app.use(async (ctx, next) => {
    await next();
    bodies.push(ctx.body);
  });
  app.use(compressResponses(createResponseMemory(memoryFor('answers', 64 * 1_048_576))));
  app.use(async (ctx) => {
    await route.handle(context, {} as never, ctx);
  });
  const server: Server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const get = async (path: string, encoding: string): Promise<string> => {
    const sent = request({ port, path, headers: { 'accept-encoding': encoding } }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    expect(response.headers['content-encoding']).toBe(encoding);
    const bytes = await buffer(response);
    expect(response.headers['content-length']).toBe(String(bytes.length));
    return (encoding === 'br' ? brotliDecompressSync(bytes) : gunzipSync(bytes)).toString();
  };
  try {
    const texts: string[] = [];
    for (const path of ['/openapi.json', '/openapi.json?pretty=true'])
      for (const encoding of ['gzip', 'br', 'gzip', 'br']) texts.push(await get(path, encoding));
    expect(texts.map((text) => (JSON.parse(text) as { openapi: string }).openapi)).toEqual(
      Array(8).fill('3.1.0'),
    );
    expect(new Set(texts).size).toBe(2);
    expect(new Set(bodies).size).toBe(4);
    const concurrent = await Promise.all(Array.from({ length: 20 }, () => get('/', 'gzip')));
    expect(new Set([...texts, ...concurrent]).size).toBe(2);
    expect(new Set(bodies).size).toBe(4);
  } finally {
    server.close();
  }
});
