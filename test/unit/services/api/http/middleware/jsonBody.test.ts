import { expect, test } from '@jest/globals';
import type { Context } from 'koa';
import { Readable } from 'node:stream';
import { readJsonBody } from '../../../../../../services/api/http/middleware/jsonBody.ts';
import { createPermitPool } from '../../../../../../shared/lib/concurrency/capacity.ts';

const BYTES = 1_000_000;

const contextOf = (body: Buffer): Context =>
  ({
    req: Object.assign(Readable.from([body.subarray(0, 9), body.subarray(9)]), {
      headers: {},
      httpVersion: '1.1',
    }),
    request: { length: body.length },
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
