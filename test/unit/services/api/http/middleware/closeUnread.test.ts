import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Context } from 'koa';
import { expect, test } from '@jest/globals';
import { closeUnreadBodies } from '../../../../../../services/api/http/middleware/closeUnread.ts';
import { LIMITS } from '../../../../../../shared/limits.ts';

/** A request that has been refused, and whose body is still to come. */
async function refused(
  headers: Record<string, string>,
  account_id?: string,
  socket = new Socket(),
): Promise<IncomingMessage> {
  const req = new IncomingMessage(socket);
  req.headers = headers;
  const ctx = { req, state: { account_id }, set: () => undefined } as unknown as Context;
  await closeUnreadBodies(ctx, () => Promise.resolve());
  return req;
}

/** An account that is alone has half. */
const SHARE = LIMITS.http.discarded / 2;

const isRead = (request: IncomingMessage): boolean => request.readableFlowing === true;

test('of large bodies whose requests are refused only so many are read at a time', async () => {
  const all: IncomingMessage[] = [];
  const next = async (headers: Record<string, string>, account?: string): Promise<boolean> => {
    all.push(await refused(headers, account));
    return isRead(all.at(-1)!);
  };
  const large = { 'content-length': '500000' };
  for (let count = 0; count < SHARE; count += 1)
    expect(await next(count % 2 === 0 ? large : { 'transfer-encoding': 'chunked' })).toBe(true);
  expect(await next(large)).toBe(false);
  expect(await next({ 'transfer-encoding': 'chunked' })).toBe(false);
  expect(await next(large, 'acct_2')).toBe(true);
  all.pop()!.socket.destroy();
  await setImmediate();
  // What is small, or is sent only when it is asked for, costs nothing.
  expect(await next({ 'content-length': '10', expect: '100-continue' })).toBe(true);

  // Whichever of them has ended leaves room for one; of those that were not read none does.
  for (const { socket } of all.slice(-3)) socket.destroy();
  await setImmediate();
  expect(await next(large)).toBe(false);
  all[3]!.socket.destroy();
  await setImmediate();
  expect(await next(large)).toBe(true);
  all[4]!.push(null);
  await setImmediate();
  expect(await next(large)).toBe(true);
  expect(await next(large)).toBe(false);
  for (const { socket } of all) socket.destroy();
  await setImmediate();
  for (let count = 0; count < SHARE; count += 1) expect(await next(large)).toBe(true);
  expect(await next(large)).toBe(false);
  for (const { socket } of all) socket.destroy();
});

test('uploads that were aborted before their refusal take no room of others', async () => {
  const large = { 'content-length': '500000' };
  for (let count = 0; count < SHARE; count += 1) {
    const socket = new Socket().destroy();
    await setImmediate();
    await refused(large, undefined, socket);
  }
  const next = await refused(large);
  expect(isRead(next)).toBe(true);
  next.socket.destroy();
});

test('frees the pieces of a body that it discards', async () => {
  const request = await refused({ 'content-length': '500000' });
  const piece = Buffer.allocUnsafeSlow(65_536);
  request.push(piece);
  await setImmediate();
  expect(piece.buffer.byteLength).toBe(0);
  request.socket.destroy();
});
