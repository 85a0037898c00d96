import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, jest, test } from '@jest/globals';
import Koa from 'koa';
import { disconnectSlowClients } from '../../../../../../services/api/http/middleware/slowClients.ts';
import { createLogger } from '../../../../../../shared/lib/logger.ts';

const MIB = 1_048_576;
const body = Buffer.alloc(64 * MIB, 'x');
let server: Server;
const sockets: Socket[] = [];
/** Unsent answers by account. */
const answers = new Map<string, number>();

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.close();
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
      checkEveryMs: 20,
      stalledMs,
      stalledWhenScarceMs,
      slowReaderBytes: 16 * MIB,
      doubleEveryMs: 40,
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
    if (ctx.path === '/slow') await setTimeout(500);
    ctx.body = ctx.path === '/slow' ? 'done' : body;
  });
  server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
}

async function ask(path: string, account = 'a'): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.pause().write(`GET ${path} HTTP/1.1\r\nhost: x\r\naccount: ${account}\r\n\r\n`);
  await once(server, 'request');
  return socket;
}

const open = (): Promise<number> =>
  new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
async function untilCut(): Promise<number> {
  const began = performance.now();
  while ((await open()) > 0) await setTimeout(10);
  return performance.now() - began;
}

test('cuts a client that takes nothing of its answer', async () => {
  await serve(300, 300);
  await ask('/');
  expect(await untilCut()).toBeGreaterThan(250);
});

test('cuts it sooner while others wait', async () => {
  await serve(600_000, 300, () => true);
  await ask('/');
  const ms = await untilCut();
  expect([ms > 250, ms < 4_000]).toEqual([true, true]);
});

/** Takes some of the answer now and then, until the connection is closed. Resolves with the bytes. */
async function takeLittle(socket: Socket): Promise<number> {
  let taken = 0;
  // Ends the round when the kernel had all that it holds; a closed connection ends it as well.
  for (let round = 0; round < 8; round += 1) {
    const goal = taken + 4 * MIB;
    while (taken < goal && !socket.destroyed) {
      const chunk = socket.read() as Buffer | null;
      taken += chunk?.length ?? 0;
      if (!chunk) await setTimeout(5);
    }
    await setTimeout(300);
  }
  return taken;
}

test('leaves a client alone that takes little at a time, though the answer is one write', async () => {
  await serve(3_000, 3_000);
  const socket = await ask('/');
  expect([await takeLittle(socket), await open()]).toEqual([expect.any(Number), 1]);
});

test('cuts a client that takes little at a time while its account is in the way of others', async () => {
  await serve(600_000, 1_000, () => true, { isInTheWay: (account_id) => account_id === 'greedy' });
  const [slow, greedy] = [await ask('/'), await ask('/', 'greedy')];
  const taken = await Promise.all([takeLittle(greedy), takeLittle(slow)]);
  expect(await open()).toBe(1);
  expect(taken[0]).toBeLessThan(taken[1]);
});

test('cuts one client of an account above its share that is in the way, however much it takes', async () => {
  await serve(600_000, 2_000, () => true, {
    checkEveryMs: 500,
    slowReaderBytes: 1_024,
    isInTheWay: () => true,
  });
  const clients = [await ask('/', 'above'), await ask('/', 'above'), await ask('/')];
  await Promise.all(clients.map(takeLittle));
  expect([await open(), answers.get('above')]).toEqual([2, 1]);
});

test('leaves a client alone that waits for its answer', async () => {
  await serve(100, 100);
  const socket = await ask('/slow');
  const [bytes] = (await once(socket.resume(), 'data')) as [Buffer];
  expect(bytes.toString()).toContain('200 OK');
});

test('a client without anything to receive needs no more speed later', async () => {
  const exceedsShare = jest.fn(() => true);
  await serve(600_000, 600_000, () => true, { isInTheWay: () => true, exceedsShare });
  await ask('/slow');
  await setTimeout(300);
  expect(exceedsShare).not.toHaveBeenCalled();
});
