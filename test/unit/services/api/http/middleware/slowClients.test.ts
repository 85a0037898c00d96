import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import Koa from 'koa';
import { disconnectSlowClients } from '../../../../../../services/api/http/middleware/slowClients.ts';
import { createLogger } from '../../../../../../shared/lib/logger.ts';

const MIB = 1_048_576;
const body = Buffer.alloc(64 * MIB, 'x');
/** How often clients are checked, in milliseconds of the faked clock. */
const CHECK_MS = 20;
/** All but the intervals and the clock of the checks. */
const REAL = [
  'Date',
  'clearImmediate',
  'clearTimeout',
  'nextTick',
  'queueMicrotask',
  'setImmediate',
  'setTimeout',
] as const;
let server: Server;
const sockets: Socket[] = [];
/** The server's sides of them, in the same order. */
let accepted: Socket[];
/** Unsent answers by account. */
const answers = new Map<string, number>();
let slowAnswer: PromiseWithResolvers<void>;

beforeEach(() => {
  // Connections take the time that they take.
  jest.useFakeTimers({ doNotFake: [...REAL] });
  accepted = [];
  slowAnswer = Promise.withResolvers();
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.close();
  await until(() => unsent() === 0);
  answers.clear();
  jest.useRealTimers();
});

async function serve(
  stalledMs: number,
  stalledWhenScarceMs: number,
  isScarce = () => false,
  more: Partial<Parameters<typeof disconnectSlowClients>[0]> = {},
): Promise<void> {
  const app = new Koa();
  const logger = createLogger('silent');
  app.use(
    disconnectSlowClients({
      logger,
      checkEveryMs: CHECK_MS,
      stalledMs,
      stalledWhenScarceMs,
      slowReaderBytes: 16 * MIB,
      doubleEveryMs: 2 * CHECK_MS,
      isScarce,
      isInTheWay: () => false,
      exceedsShare: (account_id) => answers.get(account_id)! > 1,
      ...more,
    }),
  );
  app.use(async (ctx) => {
    const account = ctx.get('account');
    ctx.state['account_id'] = account;
    answers.set(account, (answers.get(account) ?? 0) + 1);
    ctx.res.on('close', () => answers.set(account, answers.get(account)! - 1));
    if (ctx.path === '/slow') await slowAnswer.promise;
    ctx.body = ctx.path === '/slow' ? 'done' : body;
  });
  server = app.listen(0, '127.0.0.1');
  server.on('connection', (socket) => accepted.push(socket));
  await once(server, 'listening');
}

const unsent = (): number => [...answers.values()].reduce((sum, count) => sum + count, 0);

async function until(happened: () => boolean): Promise<void> {
  while (!happened()) await setTimeout(1);
}

/** Sends a request. Resolves once the answer to `/` waits for the client, which takes nothing yet. */
async function ask(path: string, account = 'a'): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.pause().write(`GET ${path} HTTP/1.1\r\nhost: x\r\naccount: ${account}\r\n\r\n`);
  await once(server, 'request');
  if (path === '/') await until(() => accepted.at(-1)!.writableLength > 0);
  return socket;
}

const isOpen = (socket: Socket): boolean => !accepted[sockets.indexOf(socket)]!.destroyed;

/** Lets the clock of the checks run, and those whom they cut leave. */
async function pass(ms: number): Promise<void> {
  jest.advanceTimersByTime(ms);
  await until(() => unsent() === sockets.filter(isOpen).length);
}

/** Resolves with the time until the client was cut, which counts from the last bytes that it got. */
async function untilCut(socket: Socket): Promise<number> {
  let ms = 0;
  for (; isOpen(socket); ms += CHECK_MS) await pass(CHECK_MS);
  return ms;
}

test('cuts a client that takes nothing of its answer', async () => {
  await serve(300, 300);
  const socket = await ask('/');
  expect(await untilCut(socket)).toBeGreaterThanOrEqual(300);
});

test('cuts it sooner while others wait', async () => {
  await serve(600_000, 300, () => true);
  const socket = await ask('/');
  const ms = await untilCut(socket);
  expect([ms >= 300, ms < 600_000]).toEqual([true, true]);
});

const sentTo = (socket: Socket): number => {
  const { _handle } = accepted[sockets.indexOf(socket)] as unknown as {
    _handle: { bytesWritten: number; writeQueueSize: number };
  };
  return _handle.bytesWritten - _handle.writeQueueSize;
};

/** Takes some of the answer, so that the server can send more, unless the connection is closed. */
async function takeLittle(socket: Socket): Promise<void> {
  if (!isOpen(socket)) return;
  const sent = sentTo(socket);
  for (let taken = 0; taken < 4 * MIB;) {
    const chunk = socket.read() as Buffer | null;
    taken += chunk?.length ?? 0;
    if (!chunk) await setTimeout(1);
  }
  await until(() => sentTo(socket) > sent);
}

/** The clients take some of their answers eight times, with pauses of the checks' clock. */
async function takeLittleAtATime(pauseMs: number, ...clients: Socket[]): Promise<void> {
  for (let round = 0; round < 8; round += 1) {
    for (const socket of clients) await takeLittle(socket);
    await pass(pauseMs);
  }
}

test('leaves a client alone that takes little at a time, though the answer is one write', async () => {
  await serve(3_000, 3_000);
  const socket = await ask('/');
  await takeLittleAtATime(2_900, socket);
  expect(isOpen(socket)).toBe(true);
});

test('cuts a client that takes little at a time while its account is in the way of others', async () => {
  await serve(600_000, 1_000, () => true, { isInTheWay: (account_id) => account_id === 'greedy' });
  const clients = [await ask('/'), await ask('/', 'greedy')];
  await takeLittleAtATime(900, ...clients);
  expect(clients.map(isOpen)).toEqual([true, false]);
});

test('cuts one client of an account above its share that is in the way, however much it takes', async () => {
  await serve(600_000, 2_000, () => true, {
    checkEveryMs: 500,
    slowReaderBytes: 1_024,
    isInTheWay: () => true,
  });
  const clients = [await ask('/', 'above'), await ask('/', 'above'), await ask('/')];
  await takeLittleAtATime(1_500, ...clients);
  expect([clients.filter(isOpen).length, isOpen(clients[2]!), answers.get('above')]).toEqual([
    2,
    true,
    1,
  ]);
});

test('leaves a client alone that waits for its answer', async () => {
  await serve(100, 100);
  const socket = await ask('/slow');
  await pass(10_000);
  slowAnswer.resolve();
  const [bytes] = (await once(socket.resume(), 'data')) as [Buffer];
  expect(bytes.toString()).toContain('200 OK');
});

test('a client without anything to receive needs no more speed later', async () => {
  const exceedsShare = jest.fn(() => true);
  await serve(600_000, 600_000, () => true, { isInTheWay: () => true, exceedsShare });
  await ask('/slow');
  await pass(10_000);
  expect(exceedsShare).not.toHaveBeenCalled();
});
