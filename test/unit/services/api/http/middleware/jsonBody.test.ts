import { runInNewContext } from 'node:vm';
import { setFlagsFromString } from 'node:v8';
import { describe, expect, jest, test } from '@jest/globals';
import type { Context } from 'koa';
import { Readable } from 'node:stream';
import {
  admitBody,
  readJsonBody,
} from '../../../../../../services/api/http/middleware/jsonBody.ts';
import { createPermitPool } from '../../../../../../shared/lib/concurrency/capacity.ts';
import { createMemoryLedger } from '../../../../../../shared/lib/memory/ledger.ts';
import type { TurnlogError } from '../../../../../../shared/lib/errors/turnlogError.ts';

const BYTES = 1_000_000;

const unchecked = (json: unknown): unknown => json;

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
  const read = await readJsonBody(
    contextOf(body),
    { permit: place, account_id: 'account' },
    unchecked,
  );
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
  await expect(
    readJsonBody(context, { permit: place, account_id: 'account' }, unchecked),
  ).rejects.toThrow('not JSON');
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
    readJsonBody(
      contextOf(Buffer.alloc(0), body, length),
      { permit: place, account_id: 'account' },
      unchecked,
    ),
  ).rejects.toThrow(message);
  expect(body.listenerCount('data')).toBe(0);
});

test('a request that has ended before its body is read is refused', async () => {
  const body = new Readable({ read: () => undefined });
  body.destroy();
  const bodies = createPermitPool('test_gone', { permits: Infinity, bytes: Infinity });
  const place = bodies.acquire({ account_id: 'account', bytes: 1 });
  await expect(
    readJsonBody(
      contextOf(Buffer.alloc(0), body, 1),
      { permit: place, account_id: 'account' },
      unchecked,
    ),
  ).rejects.toThrow('ended');
});

async function readText(
  text: string,
  check: (json: unknown) => unknown = unchecked,
): Promise<unknown> {
  const body = Buffer.from(text);
  const bodies = createPermitPool('test_text', { permits: Infinity, bytes: Infinity });
  const permit = bodies.acquire({ account_id: 'account', bytes: body.length });
  return readJsonBody(contextOf(body), { permit, account_id: 'account' }, check);
}

describe('the memory of a body', () => {
  const values = 9_970;
  const text = `{"a":[${Array.from({ length: values }, () => '{}').join()}]}`;

  /** Reads the text with this ledger, and returns the bytes that its account has reserved. */
  async function bytesOf(body: string, memory = createMemoryLedger()): Promise<number> {
    const context = contextOf(Buffer.from(body));
    const type = 'application/json';
    Object.assign(context, {
      method: 'POST',
      get: (name: string) => (name === 'content-type' ? type : ''),
    });
    Object.assign(context.request, { type });
    Object.assign(context.req, { rawHeaders: ['content-type', type] });
    const permit = admitBody(context, memory, { account_id: 'account' });
    try {
      await readJsonBody(context, { permit, account_id: 'account' }, unchecked);
      return memory.usage('bodies').used;
    } finally {
      permit.release();
    }
  }

  test('is counted as parsed once it is, which a list of empty objects takes at least', async () => {
    setFlagsFromString('--expose_gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    const parsed = Array.from({ length: 10 }, () => JSON.parse(text) as unknown);
    collectGarbage();
    const taken = (process.memoryUsage().heapUsed - before) / parsed.length;
    expect(taken).toBeGreaterThan(15 * text.length);
    expect(await bytesOf(text)).toBeGreaterThan(taken);
  });

  test('of a few values is little more than its text', async () => {
    const small = JSON.stringify({ input: '[{,'.repeat(200), session_id: 's' });
    expect(await bytesOf(small)).toBeLessThan(small.length + 200);
  });

  test('that is not available rejects the body before it is parsed', async () => {
    const memory = createMemoryLedger({ bodies: { all: { permits: 9, bytes: 8 * text.length } } });
    const other = { account_id: 'account', purpose: 'bodies', bytes: 1.5 * text.length } as const;
    for (let bodies = 0; bodies < 2; bodies += 1) memory.reserveNow(other);
    const parse = jest.spyOn(JSON, 'parse');
    await expect(bytesOf(text, memory)).rejects.toMatchObject({ code: 'rate_limited' });
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
    expect(memory.usage('bodies')).toMatchObject({ used: 2 * other.bytes, rejections: 1 });
  });

  test('is at most what one request may count, so that an account alone is never refused', async () => {
    const bytes = 8 * text.length;
    const memory = createMemoryLedger({ bodies: { all: { permits: 9, bytes } } });
    expect(await bytesOf(text, memory)).toBe(bytes / 4);
  });
});

const ILL_FORMED = 'must be well-formed Unicode text.';
const TOO_LARGE = `must be a number between -${Number.MAX_VALUE} and ${Number.MAX_VALUE}.`;

test.each([
  ['{"a":{"b":["x","\\ud800"]}}', '/a/b/1', ILL_FORMED],
  ['{"a":["\\uDFFFx"]}', '/a/0', ILL_FORMED],
  ['"\\ud83d\\ud83d\\ude00"', '', ILL_FORMED],
  ['{"a":[{"\\udc00":1}]}', '/a/0', 'must have names of well-formed Unicode text.'],
  ['{"a~/":[1,[0,{"b":1e400}]]}', '/a~0~1/1/1/b', TOO_LARGE],
  ['{"a":{},"b":-1E+999}', '/b', TOO_LARGE],
  ['[1,1E+00309]', '/1', TOO_LARGE],
  [`[-${'1'.repeat(310)}]`, '/0', TOO_LARGE],
  [`[${'1'.repeat(230)}.5e99]`, '/0', TOO_LARGE],
])('a body that would not be recorded as sent is refused: %s', async (text, path, message) => {
  const field = path.slice(1) || 'body';
  const reason = (await readText(text).catch((error: unknown) => error)) as TurnlogError;
  expect([reason.code, reason.details]).toEqual([
    'invalid_request',
    { [field]: { path, message: `${JSON.stringify(field)} ${message}` } },
  ]);
});

test.each([
  '"\\ud83d\\ude00 \\\\ud800 \\u00e4"',
  '{"\\ud83d\\ude00":[9007199254740991,-9007199254740991,9007199254740993,18446744073709551615,1e21]}',
  '[1.7976931348623157E+308,0.10000000000000001,1e-400,-0,1.0,100000000000000000000.00]',
])('a body that is recorded as sent, or rounded to a double, is read: %s', async (text) => {
  expect(await readText(text)).toEqual(JSON.parse(text));
});

test('the fields of a body are checked before its characters and numbers', async () => {
  const fail = (): never => {
    throw new Error('the field');
  };
  await expect(readText('{"a":"\\ud800"}', fail)).rejects.toThrow('the field');
  expect(await readText('{"a":1}', () => 'checked')).toBe('checked');
});
