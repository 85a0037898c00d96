import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { type WatchedLog, watchLog } from '../../support/processes/operator.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';

const KIB = 1_024;
const MIB = 1_024 * KIB;

let service: TestService;
let log: WatchedLog;
let agent: string;
beforeAll(async () => {
  service = await startTestService();
  log = await watchLog(service.folder);
  agent = await service.createAgent();
});
afterAll(async () => {
  await log.close();
  await service.close();
});

const GOOD = { name: 'Sums', instruction: 'Add up.', model: 'scripted' };
const create = (body: unknown, headers: Record<string, string> = {}) =>
  service.post('/v1/agents', body, headers);
const run = (body: unknown) => service.post(`/v1/agents/${agent}/run`, body);

/** A body as bytes, which the client of the tests can't send. */
async function send(
  body: NonNullable<RequestInit['body']>,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const response = await fetch(`${service.url}/v1/agents`, {
    method: 'POST',
    headers: { 'x-api-key': service.key, 'content-type': 'application/json', ...headers },
    body,
    duplex: 'half',
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Reply['body'],
  };
}

/** Expects the failure, and that nothing was appended and the service goes on. */
async function refused(ask: () => Promise<Reply>, code: ErrorCode): Promise<Reply['body']> {
  const head = await log.head();
  const body = expectFailure(await ask(), code);
  expect(await log.head()).toBe(head);
  expect((await service.get('/v1/models')).status).toBe(200);
  return body;
}

describe('a body that is not JSON', () => {
  test.each([
    '',
    '{',
    '{"name":',
    '[1,]',
    "{'name':1}",
    'undefined',
    'NaN',
    '{"name":"\\x"}',
    '{"name":"a\nb"}',
    '{"a":1}{"b":2}',
    'name=x',
    '\0',
    '{"name":"\\ud800',
  ])('is refused: %j', async (body) => {
    await refused(() => create(body), 'invalid_json');
  });

  test.each([
    ['an invalid byte', [0xff]],
    ['an overlong form', [0xc0, 0x80]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['half a character', [0xe2, 0x82]],
    ['more than U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
  ])('is refused when its UTF-8 has %s', async (_what, bytes) => {
    const body = Buffer.concat([
      Buffer.from('{"name":"'),
      Buffer.from(bytes),
      Buffer.from('","instruction":"x","model":"scripted"}'),
    ]);
    await refused(() => send(body), 'invalid_json');
  });

  test('is refused in UTF-16', async () => {
    await refused(() => send(Buffer.from(JSON.stringify(GOOD), 'utf16le')), 'invalid_json');
    await refused(
      () =>
        send(Buffer.from(JSON.stringify(GOOD), 'utf16le'), {
          'content-type': 'application/json; charset=utf-16',
        }),
      'unsupported_media_type',
    );
  });
});

describe('a body that is not declared as JSON', () => {
  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'text/json',
    'application/problem+json',
    'application/json; charset=latin1',
    'json',
    ';',
    'application/json, text/plain',
  ])('is refused: %s', async (type) => {
    expect(
      (await refused(() => create(GOOD, { 'content-type': type }), 'unsupported_media_type')).error,
    ).toMatch(/application\/json|UTF-8/);
  });

  test('is refused without any declaration', async () => {
    await refused(
      () => send(Buffer.from(JSON.stringify(GOOD)), { 'content-type': '' }),
      'unsupported_media_type',
    );
  });

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'Application/JSON',
    'application/json; charset="utf-8"',
  ])('is taken as JSON: %s', async (type) => {
    expect((await create(GOOD, { 'content-type': type })).status).toBe(200);
  });

  test.each(['gzip', 'deflate', 'br', 'zstd', 'nonsense', 'gzip, identity'])(
    'is refused when it is compressed: %s',
    async (encoding) => {
      expect(
        (
          await refused(
            () => send(gzipSync(JSON.stringify(GOOD)), { 'content-encoding': encoding }),
            'unsupported_media_type',
          )
        ).error,
      ).toContain('compressed');
    },
  );
});

describe('a body of 5 MB', () => {
  const big = Buffer.from(JSON.stringify({ ...GOOD, instruction: 'x'.repeat(5 * MIB) }));

  test('is refused by its declared length', async () => {
    expect((await refused(() => send(big), 'payload_too_large')).error).toContain(String(2 * MIB));
  });

  test('is refused when it comes in chunks without a length', async () => {
    const chunks = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < big.length; at += 64 * KIB)
          controller.enqueue(big.subarray(at, at + 64 * KIB));
        controller.close();
      },
    });
    await refused(() => send(chunks), 'payload_too_large');
  });
});

describe('JSON that is not what is described', () => {
  test.each(['null', 'true', '1', '"text"', '[]', '[{"name":"x"}]'])(
    'is refused as a whole: %s',
    async (body) => {
      expect((await refused(() => create(body), 'invalid_request')).details).toEqual({
        body: { message: '"body" must be object.', path: '' },
      });
    },
  );

  test.each([
    ['10,000 arrays deep', `${'['.repeat(10_000)}${']'.repeat(10_000)}`, 'body'],
    [
      '10,000 objects deep in a field',
      `{"name":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)},"instruction":"x","model":"scripted"}`,
      'name',
    ],
    [
      '10,000 arrays deep in an unknown field',
      `{"name":"x","instruction":"x","model":"scripted","extra":${'['.repeat(10_000)}${']'.repeat(10_000)}}`,
      'extra',
    ],
    ['as deep as a body can be', `${'['.repeat(MIB / 2)}${']'.repeat(MIB / 2)}`, 'body'],
  ])('is refused %s', async (_what, body, field) => {
    expect(Object.keys((await refused(() => create(body), 'invalid_request')).details!)).toEqual([
      field,
    ]);
  });

  test('is refused with every missing field named', async () => {
    const { details, error } = await refused(() => create({}), 'invalid_request');
    expect(details).toEqual({
      name: { message: '"name" is required.', path: '/name' },
      instruction: { message: '"instruction" is required.', path: '/instruction' },
      model: { message: '"model" is required.', path: '/model' },
    });
    for (const field of ['name', 'instruction', 'model'])
      expect(error).toContain(`"${field}" is required.`);
    expect((await refused(() => run({}), 'invalid_request')).details).toHaveProperty('input');
  });

  test.each([
    'config',
    'agent_id',
    'Name',
    'name ',
    '',
    '__proto__',
    'constructor',
    'hasOwnProperty',
    'toString',
    '0',
    'é',
    '\u0000',
  ])('is refused with the unknown field %j named, and the known ones listed', async (field) => {
    const { details } = await refused(
      () =>
        create(
          `{"name":"x","instruction":"x","model":"scripted",${JSON.stringify(field)}:{"name":"x"}}`,
        ),
      'invalid_request',
    );
    expect(JSON.stringify(details)).toContain(
      'is not a known field; known are name, instruction, model, tool, component, compaction, temperature, max_output_tokens, response_format.',
    );
    expect(Object.values(details!)).toEqual([expect.objectContaining({ path: `/${field}` })]);
    expect(({} as Record<string, unknown>)['name']).toBeUndefined();
  });

  test('is refused in a bounded answer when it has 50,000 unknown fields', async () => {
    const fields = Object.fromEntries(
      Array.from({ length: 50_000 }, (_, index) => [`field ${index}`, 0]),
    );
    expect(
      Object.keys((await refused(() => create({ ...GOOD, ...fields }), 'invalid_request')).details!)
        .length,
    ).toBeLessThanOrEqual(20);
    await refused(() => create({ ...GOOD, ['k'.repeat(500_000)]: 0 }), 'invalid_request');
  });

  test.each(['name', 'instruction', 'model', 'tool', 'component'])(
    'is refused with the type named that %s must have',
    async (field) => {
      for (const value of [null, true, 0, 1.5, [], ['x'], {}, { toString: 'x' }]) {
        expect(
          (await refused(() => create({ ...GOOD, [field]: value }), 'invalid_request')).details,
        ).toEqual({ [field]: { message: `"${field}" must be string.`, path: `/${field}` } });
      }
    },
  );

  test.each([
    ['input', 'string', [null, false, 7, [], {}]],
    ['session_id', 'string or null', [false, 7, [], {}]],
  ])('is refused in a run with the type named that %s must have', async (field, type, values) => {
    for (const value of values)
      expect(
        (await refused(() => run({ input: 'x', [field]: value }), 'invalid_request')).details,
      ).toEqual({ [field]: { message: `"${field}" must be ${type}.`, path: `/${field}` } });
  });
});

describe('text', () => {
  test.each(['\\u0000', 'a\\u0000b', '\\ud800', '\\udc00', 'x\\ud83dx', '\\ude00\\ud83d'])(
    'with NUL or a lone surrogate is refused in every field: %s',
    async (escaped) => {
      const expected = (field: string) => ({
        [field]: {
          message:
            field === 'name' && escaped.includes('\\u0000')
              ? '"name" must have a visible character and no control characters or line breaks.'
              : `"${field}" must be well-formed Unicode text without NUL characters.`,
          path: `/${field}`,
        },
      });
      for (const field of ['name', 'instruction', 'model', 'tool', 'component']) {
        const body = JSON.stringify({ ...GOOD, [field]: '@' }).replace('"@"', `"${escaped}"`);
        expect((await refused(() => create(body), 'invalid_request')).details).toEqual(
          expected(field),
        );
      }
      expect(
        (await refused(() => run(`{"input":"${escaped}"}`), 'invalid_request')).details,
      ).toEqual(expected('input'));
      expect(
        (await refused(() => run(`{"input":"x","session_id":"${escaped}"}`), 'invalid_request'))
          .details,
      ).toEqual(expected('session_id'));
    },
  );

  test.each([
    '👩‍👩‍👧‍👦',
    'e\u0301\u0327',
    '\u202Eabc',
    '\uFFFD\uFFFF',
    '𝔘𝔫𝔦𝔠𝔬𝔡𝔢',
    '\u0001\u001f\u007f',
    '"\\/',
    '\u2028\u2029',
    '\uFEFFx',
  ])('of any other kind is asked, answered, recorded and shown unchanged: %j', async (text) => {
    service.model.use({ text: `${text}!` });
    const { body } = await run({ input: text });
    expect(body.data.output).toBe(`${text}!`);
    expect(service.model.requests.at(-1)!.messages.at(-1)).toEqual({ role: 'user', content: text });
    const { turns } = (await service.get(`/v1/sessions/${body.data.session_id}`)).body.data;
    expect([turns[0].input, turns[0].output]).toEqual([text, `${text}!`]);
  });

  test.each(['name', 'instruction', 'model', 'tool', 'component'])(
    'that is empty is refused in %s',
    async (field) => {
      expect(
        (await refused(() => create({ ...GOOD, [field]: '' }), 'invalid_request')).details,
      ).toEqual({ [field]: { message: `"${field}" must not be empty.`, path: `/${field}` } });
    },
  );
});

describe('the limit', () => {
  test.each(['x', 'é', '😀'])('of a name is 256 characters: %s', async (character) => {
    expect((await create({ ...GOOD, name: character.repeat(256) })).status).toBe(200);
    const { details } = await refused(
      () => create({ ...GOOD, name: character.repeat(257) }),
      'invalid_request',
    );
    expect(details).toEqual({
      name: { message: '"name" must NOT have more than 256 characters.', path: '/name' },
    });
  });

  test.each([
    ['one byte each', 'x', 1],
    ['two bytes each', 'é', 2],
    ['four bytes each', '😀', 4],
  ])(
    'of an instruction is 256 KiB, and of an input 512 KiB, in characters of %s',
    async (_what, character, bytes) => {
      service.model.use({ text: 'ok' });
      const instruction = character.repeat((256 * KIB) / bytes);
      expect((await create({ ...GOOD, instruction })).status).toBe(200);
      expect(
        (
          await refused(
            () => create({ ...GOOD, instruction: `${instruction}x` }),
            'invalid_request',
          )
        ).details,
      ).toEqual({
        instruction: {
          message: '"instruction" must not be longer than 262144 bytes of UTF-8.',
          path: '/instruction',
        },
      });
      const input = character.repeat((512 * KIB) / bytes);
      expect((await run({ input })).status).toBe(200);
      expect((await refused(() => run({ input: `${input}x` }), 'invalid_request')).details).toEqual(
        {
          input: {
            message: '"input" must not be longer than 524288 bytes of UTF-8.',
            path: '/input',
          },
        },
      );
    },
  );

  test('of a body is 2 MiB, to the byte', async () => {
    const body = JSON.stringify(GOOD);
    expect((await create(body.padEnd(2 * MIB))).status).toBe(200);
    expect(
      (await refused(() => create(body.padEnd(2 * MIB + 1)), 'payload_too_large')).error,
    ).toContain(String(2 * MIB));
  });

  test.each([
    ['512 KiB of line breaks', 'input', '\n'.repeat(512 * KIB)],
    ['512 KiB of quotes', 'input', '"'.repeat(512 * KIB)],
    ['170 KiB of control characters', 'input', '\u0001'.repeat(170 * KIB)],
    ['170 KiB of control characters', 'instruction', '\u0001'.repeat(170 * KIB)],
  ])('of a text as JSON is said where it is met: %s in %s', async (_what, field, text) => {
    const ask = () =>
      field === 'input' ? run({ input: text }) : create({ ...GOOD, [field]: text });
    const { details } = await refused(ask, 'invalid_request');
    expect(details).toEqual({
      [field]: {
        message: expect.stringMatching(/must not be longer than 983040 bytes as JSON/),
        path: `/${field}`,
      },
    });
  });

  test.each([
    ['480 KiB of line breaks', '\n'.repeat(480 * KIB - 1)],
    ['512 KiB in letters of two bytes', 'é'.repeat(256 * KIB)],
    ['512 KiB in characters of four bytes', '😀'.repeat(128 * KIB)],
  ])('takes what it promises, however it is escaped: %s', async (_what, input) => {
    const escaped = JSON.stringify(input).replaceAll(
      /[\u0080-\uffff]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    service.model.use({ text: 'ok' });
    const reply = await service.post(`/v1/agents/${agent}/run`, `{"input":${escaped}}`);
    expect([reply.status, reply.body.error]).toEqual([200, undefined]);
    expect(service.model.requests.at(-1)!.messages.at(-1)!.content).toBe(input);
  });
});
