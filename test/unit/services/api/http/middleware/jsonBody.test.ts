import { expect, test } from '@jest/globals';
import type { Context } from 'koa';
import { Readable } from 'node:stream';
import { readJsonBody } from '../../../../../../services/api/http/middleware/jsonBody.ts';
import { createPermitPool } from '../../../../../../shared/lib/concurrency/capacity.ts';

const BYTES = 1_000_000;

const contextOf = (
  body: Buffer,
  request: Readable = Readable.from([body.subarray(0, 9), body.subarray(9)]),
  length = body.length,
): Context =>
  ({
    req: Object.assign(request, { headers: {}, httpVersion: '1.1' }),
    request: { length },
    path: '/',
    state: {},
  }) as unknown as Context;

test('what a large body came in is free once it is read, without a collector', async () => {
  const body = Buffer.from(JSON.stringify('x'.repeat(BYTES)));
  const bodies = createPermitPool('test', { permits: Infinity, bytes: Infinity });
  const place = bodies.acquire({ account_id: 'account', bytes: body.length });
  const before = process.memoryUsage().arrayBuffers;
  const read = await readJsonBody(contextOf(body), place, 'account');
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(0.1 * BYTES);
  expect(read).toHaveLength(BYTES);
});

test('the pieces of a body are free as soon as they have been collected', async () => {
  const piece = (): Buffer => Buffer.alloc(64_000, ' ');
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  function* pieces(): Generator<Buffer> {
    for (let at = 0; at < 30; at += 1) {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
      yield piece();
    }
  }
  const context = contextOf(
    Buffer.alloc(0),
    Readable.from(pieces(), { highWaterMark: 1 }),
    30 * 64_000,
  );
  const bodies = createPermitPool('test_pieces', { permits: Infinity, bytes: Infinity });
  const place = bodies.acquire({ account_id: 'account', bytes: 30 * 64_000 });
  await expect(readJsonBody(context, place, 'account')).rejects.toThrow('not JSON');
  // The body twice, while its buffer grows.
  expect(most).toBeLessThan(2.2 * 30 * 64_000);
});

test.each([
  ['ends too early', [Buffer.from('{'), undefined], 10, 'ended before it was complete'],
  ['is too large', [Buffer.alloc(9), Buffer.alloc(9)], 10, 'larger than'],
] as const)('a body that %s is refused', async (_, pieces, length, message) => {
  const body = new Readable({ read: () => undefined });
  for (const piece of pieces) if (piece) body.push(piece);
  if (pieces[1] === undefined) setImmediate(() => body.destroy());
  const bodies = createPermitPool('test_refused', { permits: Infinity, bytes: Infinity });
  const place = bodies.acquire({ account_id: 'account', bytes: length });
  await expect(
    readJsonBody(contextOf(Buffer.alloc(0), body, length), place, 'account'),
  ).rejects.toThrow(message);
  expect(body.listenerCount('data')).toBe(0);
});

test('a request that has ended before its body is read is refused', async () => {
  const body = new Readable({ read: () => undefined });
  body.destroy();
  const bodies = createPermitPool('test_gone', { permits: Infinity, bytes: Infinity });
  const place = bodies.acquire({ account_id: 'account', bytes: 1 });
  await expect(readJsonBody(contextOf(Buffer.alloc(0), body, 1), place, 'account')).rejects.toThrow(
    'ended',
  );
});
