import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { Agent, fetch as undiciFetch } from 'undici';
import { LIMITS } from '../../../shared/limits.ts';
import { createOfflineModel, OFFLINE_BASE_URL } from '../../../infra/offline-model/server.ts';

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

type Request = Parameters<OpenAI['chat']['completions']['create']>[0];
const tool = (name: string) => ({
  type: 'function' as const,
  function: { name, description: name, parameters: { type: 'object', properties: {} } },
});
const ask = (content: string, more: Partial<Request> = {}) => ({
  model: 'offline-echo',
  messages: [{ role: 'user' as const, content }],
  ...more,
  stream: false as const,
});

describe('the offline model', () => {
  const pauses: number[] = [];
  const server = createOfflineModel(async (ms) => void pauses.push(ms));
  const dispatcher = new Agent({
    connect: (_target, connected) =>
      queueMicrotask(() => connected(null, server.connect() as Socket)),
  });
  const fetch = (url: string, init?: object) => undiciFetch(url, { ...init, dispatcher });
  const client = new OpenAI({
    baseURL: OFFLINE_BASE_URL,
    apiKey: 'any',
    maxRetries: 0,
    fetch: fetch as unknown as typeof globalThis.fetch,
  });
  beforeEach(() => void pauses.splice(0));
  afterAll(() => dispatcher.destroy());

  const post = async (body: string, path = '/chat/completions') => {
    const response = await fetch(OFFLINE_BASE_URL + path, { method: 'POST', body });
    return {
      status: response.status,
      body: (await response.json()) as { error: { message: string } },
    };
  };
  test.each<[object, unknown]>([
    [{}, { answer: expect.stringContaining('You said: "go"') }],
    [
      {
        properties: { a: { type: 'integer', minimum: 3 }, b: { $ref: '#/$defs/b' } },
        required: ['c'],
        $defs: { b: { enum: ['x', 'y'] } },
      },
      { a: 3, b: 'x', c: expect.any(String) },
    ],
    [{ type: 'array', minItems: 2, items: { type: ['boolean', 'null'] } }, [true, true]],
    [{ anyOf: [{ const: null }] }, null],
  ])('says it in JSON that fits %j', async (schema, expected) => {
    const response_format = {
      type: 'json_schema' as const,
      json_schema: { name: 'n', schema: schema as Record<string, unknown> },
    };
    const { content } = await message(ask('go', { response_format }));
    expect(JSON.parse(content!)).toEqual(expected);
  });

  test('ends where a schema has no end', async () => {
    const again = { type: 'object', properties: { a: { $ref: '#' }, b: { $ref: '#' } } };
    const response_format = {
      type: 'json_schema' as const,
      json_schema: { name: 'n', schema: again },
    };
    const { content } = await message(ask('go', { response_format }));
    expect(content!.length).toBeLessThan(100_000);
    const own = await message(ask('go', { response_format: { type: 'json_object' } }));
    expect(JSON.parse(own.content!)).toEqual({ answer: expect.any(String) });
  });

  const asJson = (schema: Record<string, unknown>) => ({
    response_format: { type: 'json_schema' as const, json_schema: { name: 'n', schema } },
  });

  test('cuts the texts of a schema with thousands of names, and has a value for each name', async () => {
    const required = Array.from({ length: 5_300 }, (_, index) => index.toString(36));
    const { content } = await message(ask('a '.repeat(2_000), asJson({ required })));
    expect(Object.keys(JSON.parse(content!) as object).toSorted()).toEqual(required.toSorted());
    expect(content!.length).toBeLessThan(3 * LIMITS.offlineModel.answerChars);
  });

  test.each<[string, Record<string, unknown>]>([
    [
      'names',
      Object.fromEntries(
        Array.from({ length: 1_000 }, (_, index) => [
          `property-${index}`,
          index % 10 === 0 ? { $ref: '#' } : true,
        ]),
      ),
    ],
    ['a constant', { a: { type: 'array', minItems: 90, items: { const: 'x'.repeat(20_000) } } }],
    ['a choice', { a: { type: 'array', minItems: 90, items: { enum: ['x'.repeat(20_000)] } } }],
  ])('refuses a schema that asks for %s too often', async (_what, properties) => {
    const body = JSON.stringify(ask('go', asJson({ type: 'object', properties })));
    const { status, body: answer } = await post(body);
    expect([status, answer.error.message]).toEqual([400, expect.stringMatching(/more than 65536/)]);
  });

  const message = async (request: OpenAI.ChatCompletionCreateParamsNonStreaming) =>
    (await client.chat.completions.create(request)).choices[0]!.message;

  test('answers with the last input, the number of turns that it was shown, and what it is', async () => {
    const completion = await client.chat.completions.create({
      model: 'offline-echo',
      messages: [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'yes' },
        { role: 'user', content: 'say "two"\n😀' },
      ],
    });
    expect(completion.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: {
        role: 'assistant',
        content:
          'This is the offline model. You said: "say "two"\n😀". I was shown 2 turns of this conversation.',
      },
    });
    expect(completion.usage).toEqual({ prompt_tokens: 7, completion_tokens: 18, total_tokens: 25 });
  });

  test('gives the same answer to the same request, to the byte, under another id', async () => {
    const body = JSON.stringify(ask('Hello'));
    const texts = await Promise.all(
      [1, 2].map(async () =>
        (await fetch(`${OFFLINE_BASE_URL}/chat/completions`, { method: 'POST', body })).text(),
      ),
    );
    const [first, second] = texts.map((text) => JSON.parse(text) as { id: string });
    expect(first!.id).not.toBe(second!.id);
    expect(texts[0]!.replace(first!.id, second!.id)).toBe(texts[1]);
    expect(texts[0]).toContain('offline model');
  });

  test('numbers its tool calls through a conversation, whatever the texts', async () => {
    const tools = [tool('calculator')];
    const callOf = async (request: Parameters<typeof message>[0]) =>
      (await message(request)).tool_calls![0]!;
    const first = await callOf(ask('1+1', { tools }));
    expect(await callOf(ask('2+3', { tools }))).toMatchObject({ id: first.id });
    const messages = [
      { role: 'user' as const, content: '1+1' },
      { role: 'assistant' as const, content: null, tool_calls: [first] },
      { role: 'tool' as const, tool_call_id: first.id, content: '2' },
      { role: 'assistant' as const, content: 'Two.' },
      { role: 'user' as const, content: '2+3' },
    ];
    const second = await callOf(ask('', { messages, tools }));
    expect([first.id, second.id]).toEqual(['call_1', 'call_2']);
  });

  test('streams the same answer in pieces, with the usage when it is asked for', async () => {
    const whole = await client.chat.completions.create(ask('Hello there'));
    const stream = await client.chat.completions.create({
      ...ask('Hello there'),
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await collect(stream);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(
      whole.choices[0]?.message.content,
    );
    expect(chunks.length).toBeGreaterThan(10);
    expect(chunks.at(-1)?.usage).toEqual(whole.usage);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop');
  });

  test('streams a tool call, and no usage unless it is asked for', async () => {
    const stream = await client.chat.completions.create({
      ...ask('1+1', { tools: [tool('calculator')] }),
      stream: true,
    });
    const chunks = await collect(stream);
    const calls = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
    expect(calls.map((call) => call.function)).toEqual([
      { name: 'calculator', arguments: '{"expression":"1+1"}' },
    ]);
    expect(chunks.some((chunk) => chunk.usage)).toBe(false);
  });

  describe('calls the calculator', () => {
    test.each([
      ['What is 12*34?', '12*34'],
      ['(1.5 + 2) * -3 please', '(1.5 + 2) * -3'],
      ['How much is 2^10?', '2^10'],
      ['Tell me 17 % 5.', '17 % 5'],
      ['What is 12,5 + 1?', '12,5 + 1'],
      ['1,000,000 / 7', '1,000,000 / 7'],
      ['What is -5 + 3?', '-5 + 3'],
      ['sqrt(16)+2', 'sqrt(16)+2'],
      ['max(1, 2) + 3, please', 'max(1, 2) + 3'],
      ['How much is 20% of 50?', '20% of 50'],
      ['12 × 34 ÷ 5 = ?', '12 × 34 ÷ 5'],
      ['2**10 or 2²?', '2**10'],
      ['3 x 4', '3 x 4'],
      ['１＋２', '１＋２'],
      ['Is it 3+4, or 5+6?', '3+4'],
      ["1'000 * 2 and $5 + $3", "1'000 * 2"],
      ['What is 3+4!', '3+4'],
      [`${'word '.repeat(398)} 12 + 34567 done`, '12 + 34567'],
    ])('for %s', async (input, expression) => {
      const { content, tool_calls } = await message(ask(input, { tools: [tool('calculator')] }));
      expect(content).toBeNull();
      expect(tool_calls).toMatchObject([
        {
          type: 'function',
          function: { name: 'calculator', arguments: JSON.stringify({ expression }) },
        },
      ]);
    });

    test.each([
      'Hello',
      'I am 34 years old',
      'Born on 2026-11-20',
      'Call 555-0199',
      '(1+2',
      '12 apples + 3',
      '12 + 3 apples * 4',
      '3 plus 4 * 5',
      '3 of 4 + 5',
      '1/2 of 8',
      '12*34km',
      'x-5+3',
      'v1.2+3',
      '12:30 + 1',
      '2+2=4',
      '1..2+3',
      'C++ 3',
      'http://x/3+4',
      `${'1+'.repeat(1_000)}1`,
      `${'word '.repeat(400)} 12 + 34567`,
    ])('not for %s', async (input) => {
      expect(
        (await message(ask(input, { tools: [tool('calculator')] }))).tool_calls,
      ).toBeUndefined();
    });

    test('not unless it is offered', async () => {
      expect((await message(ask('What is 12*34?'))).content).toContain(
        'You said: "What is 12*34?"',
      );
    });
  });

  test.each([
    ['What time is it?', '{}'],
    ["What is today's date in Asia/Tokyo?", '{"time_zone":"Asia/Tokyo"}'],
  ])('calls the clock for %s', async (input, args) => {
    expect((await message(ask(input, { tools: [tool('clock')] }))).tool_calls).toMatchObject([
      { function: { name: 'clock', arguments: args } },
    ]);
  });

  test('calls any other function that the input names, with the JSON object that stands in the input', async () => {
    const tools = [tool('calculator'), tool('web_fetch')];
    expect(
      (await message(ask('Use web_fetch with {"url":"http://x"} now', { tools }))).tool_calls,
    ).toMatchObject([{ function: { name: 'web_fetch', arguments: '{"url":"http://x"}' } }]);
    expect((await message(ask('web_fetch {broken}', { tools }))).tool_calls).toMatchObject([
      { function: { arguments: '{}' } },
    ]);
    expect((await message(ask('Fetch it', { tools }))).tool_calls).toBeUndefined();
  });

  test('searches the beginning of an input for names of functions, and reads no arguments of too many values', async () => {
    const tools = [tool('web_fetch')];
    const called = async (input: string) =>
      (await message(ask(input, { tools }))).tool_calls?.map((call) =>
        'function' in call ? call.function.arguments : '',
      );
    const { searchedChars } = LIMITS.offlineModel;
    expect(
      await called(`${' '.repeat(9)}${'.'.repeat(searchedChars - 1)}Web_Fetch {"a":1}`),
    ).toEqual(['{"a":1}']);
    expect(await called(`${'.'.repeat(searchedChars - 1)}web_fetches`)).toBeUndefined();
    expect(await called(`${'.'.repeat(searchedChars)}web_fetch`)).toBeUndefined();
    const { answerValues } = LIMITS.model;
    const values = (count: number) => `{"a":[${'1,'.repeat(count)}1]}`;
    expect(await called(`web_fetch ${values(answerValues)}`)).toEqual(['{}']);
    expect(await called(`web_fetch ${values(9)}`)).toEqual([values(9)]);
  });

  test('cuts long results of functions', async () => {
    const call = (id: string) => ({
      id,
      type: 'function' as const,
      function: { name: `tool_${id}`, arguments: '{}' },
    });
    const { content } = await message({
      ...ask(''),
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] },
        { role: 'tool', tool_call_id: 'a', content: 'x'.repeat(40_000) },
        { role: 'tool', tool_call_id: 'b', content: 'y'.repeat(40_000) },
      ],
    });
    expect(content).toMatch(/The tool_a says x{40000}\. The tool_b says y{20000,26000} You said/);
  });

  test('answers with the result of the function that it called, and does not call it again', async () => {
    const call = {
      id: 'c1',
      type: 'function' as const,
      function: { name: 'calculator', arguments: '{"expression":"12*34"}' },
    };
    const { content, tool_calls } = await message({
      ...ask('', { tools: [tool('calculator')] }),
      messages: [
        { role: 'user', content: 'What is 12*34?' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c1', content: '408' },
      ],
    });
    expect(tool_calls).toBeUndefined();
    expect(content).toMatch(/offline model.*The calculator says 408\./);
  });

  describe('directives at the start of the input', () => {
    const offered = [tool('calculator'), tool('clock'), tool('files_read')];
    const streamed = async (input: string) =>
      collect(
        await client.chat.completions.create({ ...ask(input, { tools: offered }), stream: true }),
      );
    const contents = (chunks: OpenAI.ChatCompletionChunk[]) =>
      chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '');

    test('a stream pauses before each word, and an answer in one piece does not', async () => {
      const chunks = await streamed('Hello');
      const words = contents(chunks).filter((text) => text !== '');
      expect(words.slice(0, 3)).toEqual(['This ', 'is ', 'the ']);
      expect(pauses).toEqual(words.map(() => LIMITS.offlineModel.wordMs));
      pauses.length = 0;
      await message(ask('Hello'));
      expect(pauses).toEqual([]);
    });

    test.each([
      ['/slow', LIMITS.offlineModel.slowWordMs],
      ['/slow 700', 700],
      ['/slow 999999999', LIMITS.offlineModel.longestPauseMs],
    ])('%s sets the pause before each word, streamed or not', async (directive, expected) => {
      const words = contents(await streamed(`${directive} Hello`)).filter((text) => text !== '');
      expect(pauses).toEqual(words.map(() => expected));
      pauses.length = 0;
      const { content } = await message(ask(`${directive} Hello`));
      expect(content).toBe(words.join(''));
      expect(pauses).toEqual([expected * words.length]);
    });

    test.each([
      ['/fail', 500],
      ['/fail 429', 429],
      ['/slow /fail 503 and go on', 503],
      ['/fail 200', 500],
    ])('%s fails with a status of a model server', async (input, status) => {
      const { status: answered, body } = await post(JSON.stringify(ask(input)));
      expect(answered).toBe(status);
      expect(body.error).toMatchObject({ code: 'offline_failure', message: expect.any(String) });
      expect((await post(JSON.stringify({ ...ask(input), stream: true }))).status).toBe(status);
    });

    test('/reason sends its reasoning apart from the answer, streamed or not', async () => {
      const whole = (await message(ask('/reason Hello'))) as { reasoning_content?: string };
      expect(whole.reasoning_content).toMatch(/\w+ \w+/);
      const deltas = (await streamed('/reason Hello')).map(
        (chunk) => chunk.choices[0]?.delta as { content?: string; reasoning_content?: string },
      );
      const reasoned = deltas.flatMap((delta) => delta?.reasoning_content ?? []);
      expect(reasoned.length).toBeGreaterThan(3);
      expect(reasoned.join('')).toBe(whole.reasoning_content);
      const firstWord = deltas.findIndex((delta) => delta?.content);
      expect(deltas.slice(firstWord).some((delta) => delta?.reasoning_content)).toBe(false);
      expect(await message(ask('Hello'))).not.toHaveProperty('reasoning_content');
    });

    test('/call calls any offered function with its arguments, several in one answer', async () => {
      const input =
        '/call clock /call files_read {"path":"a } b","n":{}} /call clock {} What is 1+1?';
      const { tool_calls } = await message(ask(input, { tools: offered }));
      const expected = [
        { id: 'call_1', type: 'function', function: { name: 'clock', arguments: '{}' } },
        {
          id: 'call_2',
          type: 'function',
          function: { name: 'files_read', arguments: '{"path":"a } b","n":{}}' },
        },
        { id: 'call_3', type: 'function', function: { name: 'clock', arguments: '{}' } },
      ];
      expect(tool_calls).toEqual(expected);
      const chunks = await streamed(input);
      expect(chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? [])).toEqual(
        expected.map((call, index) => ({ index, ...call })),
      );
      expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('tool_calls');
      const { content } = await message({
        ...ask('', { tools: offered }),
        messages: [
          { role: 'user', content: input },
          { role: 'assistant', content: null, tool_calls: tool_calls! },
          ...tool_calls!.map(({ id }) => ({
            role: 'tool' as const,
            tool_call_id: id,
            content: id,
          })),
        ],
      });
      expect(content).toContain(
        'The clock says call_1. The files_read says call_2. The clock says call_3.',
      );
    });

    test('/call of a function that is not offered is answered with those that are', async () => {
      const { content, tool_calls } = await message(ask('/call nosuch', { tools: offered }));
      expect(tool_calls).toBeUndefined();
      expect(content).toContain('I can call calculator, clock, files_read, not "nosuch".');
      expect((await message(ask('/call clock'))).content).toContain('I was given no tools.');
    });

    test.each(['Read /call clock', 'and/or /fail', '/failure', '/slowly', '/usr/bin'])(
      'not for %s',
      async (input) => {
        const { content, tool_calls } = await message(ask(input, { tools: offered }));
        expect([content, tool_calls]).toEqual([expect.stringContaining(`"${input}"`), undefined]);
        expect(pauses).toEqual([]);
      },
    );
  });

  test('stops a slow answer when its client disconnects', async () => {
    const aborted = Promise.withResolvers<void>();
    const slow = createOfflineModel(async (_ms, signal) => {
      connection.destroy();
      await once(signal, 'abort');
      aborted.resolve();
    });
    const connection = slow.connect();
    const body = JSON.stringify(ask('/slow Hello'));
    connection.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await aborted.promise;
  });

  test('searches a huge input for a wish in bounded time, and quotes its beginning', async () => {
    const { content } = await message(
      ask('what ('.repeat(80_000), { tools: [tool('calculator'), tool('clock')] }),
    );
    expect(content?.length).toBeLessThan(5_000);
    expect(content).toContain('what (what (');
  });

  test('lists itself', async () => {
    expect((await collect(client.models.list())).map((model) => model.id)).toEqual([
      'offline-echo',
    ]);
  });

  test.each([
    ['{"model":', 400],
    ['{}', 400],
    ['{"model":"offline-echo","messages":[]}', 400],
    ['{"model":"offline-echo","messages":[{"role":"user","content":7}]}', 400],
    ['{"model":"gpt-9","messages":[{"role":"user","content":"x"}]}', 404],
    [' '.repeat(33 * 1024 * 1024), 413],
  ])('refuses %.40s… with %i, in the shape of the API', async (body, status) => {
    const answer = await post(body);
    expect(answer.status).toBe(status);
    expect(answer.body.error).toEqual({
      message: expect.any(String),
      type: 'invalid_request_error',
      param: null,
      code: null,
    });
  });

  test('refuses an unknown path with 404', async () => {
    expect((await post('{}', '/embeddings')).status).toBe(404);
  });
});
