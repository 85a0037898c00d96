import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, jest, test } from '@jest/globals';
import Koa from 'koa';
import {
  sendEventStream,
  startEventStreams,
  type SseEvent,
} from '../../../../../../services/api/http/responses/sse.ts';
import { disconnectSlowClients } from '../../../../../../services/api/http/middleware/slowClients.ts';
import { createLogger } from '../../../../../../shared/lib/logger.ts';
import { isFreed } from '../../../../../support/jest/garbage.ts';
import { eventually } from '../../../../../support/processes/operator.ts';

let server: Server;
let socket: Socket;
afterEach(() => {
  socket.destroy();
  server.close();
});

type Events = (signal: AbortSignal) => AsyncGenerator<SseEvent>;
async function serve(
  events: Events,
  heartbeatMs?: number,
  outer: Koa.Middleware = (_ctx, next) => next(),
): Promise<void> {
  const app = new Koa().on('error', () => undefined);
  app.use(startEventStreams).use(outer);
  const logger = createLogger('silent');
  app.use(
    disconnectSlowClients({
      logger,
      isScarce: () => false,
      isInTheWay: () => false,
      exceedsShare: () => false,
      checkEveryMs: 20,
      stalledMs: 300,
    }),
  );
  app.use(async (ctx) => sendEventStream(ctx, async () => true, events, heartbeatMs));
  server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
}

function ask(line: string): { text: () => string; ended: Promise<unknown> } {
  let text = '';
  socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('data', (chunk) => (text += chunk.toString())).on('error', () => undefined);
  socket.write(`${line}\r\nhost: x\r\n\r\n`);
  return { text: () => text, ended: once(socket, 'close') };
}

const event = (data: string): SseEvent => ({ id: data.slice(0, 9), event: 'e', data });

test('a client that disconnects from a stream makes no error of its request', async () => {
  const errors: unknown[] = [];
  await serve(async function* (signal) {
    yield event('first');
    await once(signal, 'abort');
  });
  const asked = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
  ask('GET / HTTP/1.1');
  const [request, response] = await asked;
  request.on('error', (error) => errors.push(error));
  await once(socket, 'data');
  socket.destroy();
  await once(response, 'close');
  expect([errors, request.destroyed]).toEqual([[], true]);
});

test('the body of a request for a stream is not read', async () => {
  await serve(async function* (signal) {
    yield event('first');
    await once(signal, 'abort');
  });
  const asked = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
  ask('GET / HTTP/1.1\r\ncontent-length: 1000000');
  const [request] = await asked;
  socket.write('x'.repeat(100_000));
  await once(socket, 'data');
  await sleep(50);
  expect([request.readableFlowing, request.destroyed]).toEqual([null, false]);
});

test('of a client that stops to read no more is read than it takes, and it is cut', async () => {
  let read = 0;
  let left: AbortSignal | undefined;
  let isOver = false;
  await serve(async function* (signal) {
    left = signal;
    try {
      for (; ; read += 1) yield event('x'.repeat(10_000));
    } finally {
      isOver = true;
    }
  });
  const { ended } = ask('GET / HTTP/1.1');
  await once(socket, 'data');
  socket.pause();
  await eventually(
    async () => isOver,
    (over) => over,
  );
  expect(left?.aborted).toBe(true);
  // What the kernel holds of a connection, and no more.
  expect(read).toBeLessThan(2_000);
  socket.resume();
  await ended;
});

test('where nothing happens comments come, from the beginning on', async () => {
  await serve(async function* (signal) {
    await sleep(200, undefined, { signal });
    yield event('late');
  }, 20);
  const { text, ended } = ask('GET / HTTP/1.0');
  await ended;
  expect(text()).toMatch(/\r\n\r\n(:\n\n){3,}id: late\nevent: e\ndata: late\n\n$/);
});

test('a client of HTTP/1.0 gets the events as they are, and the end of the connection', async () => {
  await serve(async function* () {
    yield event('one');
    yield event('two');
  });
  const { text, ended } = ask('GET / HTTP/1.0\r\nconnection: keep-alive');
  await ended;
  expect(text()).not.toMatch(/transfer-encoding/i);
  expect(text()).toMatch(/: close\r\n/);
  expect(text().split('\r\n\r\n')[1]).toMatch(/^:\n\nid: one\n.*\n.*\n\nid: two\n.*\n.*\n\n$/);
});

test('to HEAD nothing is read, and the client counts as gone', async () => {
  let read = 0;
  let left: AbortSignal | undefined;
  await serve((signal) => {
    left = signal;
    return (async function* () {
      read += 1;
      yield event('none');
    })();
  });
  const { text } = ask('HEAD / HTTP/1.1');
  await eventually(
    async () => left?.aborted,
    (gone) => gone === true,
  );
  await eventually(
    async () => text(),
    (head) => head.endsWith('\r\n\r\n'),
  );
  expect(text()).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*text\/event-stream[^]*\r\n\r\n$/);
  expect(read).toBe(0);
});

test('what goes wrong in between cuts the connection: it is no end of the events', async () => {
  await serve(async function* () {
    yield event('one');
    await sleep(20);
    throw new Error('the store is away');
  });
  const { text, ended } = ask('GET / HTTP/1.1');
  await ended;
  expect(text()).toContain('id: one');
  // The last chunk of an answer that is whole.
  expect(text()).not.toMatch(/\r\n0\r\n\r\n$/);
});

test('starts after the middleware, which may still set headers', async () => {
  const never = async function* () {};
  await serve(never, undefined, async (ctx, next) => {
    await next();
    await sleep(50);
    ctx.set('connection', 'close');
  });
  const { text, ended } = ask('GET / HTTP/1.1');
  await ended;
  expect(text()).toMatch(/\r\nconnection: close\r\n/i);
});

test('an error after it was prepared is sent in place of it, and the client counts as gone', async () => {
  let left: AbortSignal | undefined;
  const events: Events = (signal) => {
    left = signal;
    return (async function* () {
      yield event('none');
    })();
  };
  await serve(events, undefined, async (ctx, next) => {
    await next();
    ctx.type = 'application/json';
    ctx.body = '{}';
  });
  const { text } = ask('GET / HTTP/1.1');
  await eventually(
    async () => left?.aborted,
    (gone) => gone === true,
  );
  const received = await eventually(
    async () => text(),
    (answer) => answer !== '',
  );
  expect(received).toMatch(/application\/json[^]*\r\n\r\n\{\}$/);
});

test('a client that disconnects causes one abort, and no error of a pipeline', async () => {
  const isOver = Promise.withResolvers<void>();
  await serve(async function* (signal) {
    try {
      yield event('one');
      await once(signal, 'abort');
    } finally {
      isOver.resolve();
    }
  });
  const { text } = ask('GET / HTTP/1.1');
  await eventually(
    async () => text(),
    (heard) => heard.includes('data: one'),
  );
  const abort = jest.spyOn(AbortController.prototype, 'abort');
  socket.destroy();
  await isOver.promise;
  await sleep(50);
  expect(abort).toHaveBeenCalledTimes(1);
  abort.mockRestore();
});

test('an event that was sent is not kept in memory while the stream waits for the next one', async () => {
  let sent: WeakRef<SseEvent> | undefined;
  const create = (): SseEvent => {
    const created = event('only');
    sent = new WeakRef(created);
    return created;
  };
  await serve(async function* (signal) {
    yield create();
    await once(signal, 'abort');
  });
  const { text } = ask('GET / HTTP/1.1');
  await eventually(
    async () => text(),
    (got) => got.includes('data: only'),
  );
  expect(await isFreed(sent!)).toBe(true);
});
