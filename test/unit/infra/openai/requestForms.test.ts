import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { APIError } from 'openai/core/error';
import {
  createRequestForms,
  type ProviderQuirks,
  type RequestForms,
} from '../../../../infra/openai/requestForms.ts';
import type { ChatAnswer } from '../../../../shared/ports/chatModel.ts';
import type { ChatRequest } from '../../../../shared/sessions/turns/chat.ts';

const request: ChatRequest = {
  max_completion_tokens: 40,
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hi' },
  ],
  model: 'm',
  response_format: { type: 'json_object' },
};
const { max_completion_tokens: _, response_format: __, ...bare } = request;

type Sent = ChatRequest & { streams: boolean };
let forms: RequestForms;
let sent: Sent[];
let server: (request: Sent) => object | undefined;
let completion: number | undefined;
let content: string;
beforeEach(() => {
  forms = createRequestForms();
  sent = [];
  server = () => undefined;
  completion = 5;
  content = 'Hi';
});

const rejection = (body: object, status = 400): Error =>
  APIError.generate(status, 'error' in body ? body : { error: body }, undefined, new Headers());

/** Sends a request of a model to the server, which answers unless it returns an error's body. */
const send = (quirks: ProviderQuirks = {}, model = 'm', wanted = request): Promise<ChatAnswer> =>
  forms.send(model, quirks, wanted, async (formed, streams) => {
    const call = { ...formed, streams };
    sent.push(call);
    const error = server(call);
    if (error) throw rejection(error);
    return {
      response_id: 'r',
      model: 'm',
      content,
      tool_calls: [],
      finish_reason: 'stop',
      tokens:
        completion === undefined ? undefined : { prompt: 1, completion, total: 1 + completion },
    };
  });

/** A tool call with a provider's own fields as JSON. */
const callWith = (extra: string) => ({
  extra,
  function: { arguments: '{}', name: 'f' },
  id: 'c',
  type: 'function' as const,
});

test('the standard form is sent as it is', async () => {
  expect(await send()).not.toHaveProperty('sent');
  expect(sent).toEqual([{ ...request, streams: true }]);
});

test('an error that names a standard field of tool calls is not about fields of the provider', async () => {
  const call = callWith('{"name":"f","function":{"type":"x"}}');
  const messages = [{ role: 'assistant' as const, content: null, tool_calls: [call] }];
  server = () => ({ type: 'invalid_request_error', message: 'The name is not known.' });
  await expect(send({}, 'm', { ...bare, messages })).rejects.toMatchObject({ status: 400 });
  expect(sent).toHaveLength(1);
});

test('an error whose members have unknown shapes is thrown as it is', async () => {
  const odd = { toString: 1 };
  server = () => ({ param: odd, code: odd, message: 'no' });
  await expect(send()).rejects.toMatchObject({ status: 400 });
});

const MERGED = [{ role: 'user', content: 'Be brief.\n\nHi' }];

describe('a 400 that names a field is retried once with the alternative, which is remembered:', () => {
  test.each<[string, (call: Sent) => boolean, object, object, object]>([
    [
      'max_completion_tokens',
      (call) => 'max_completion_tokens' in call,
      { message: 'Unrecognized request argument supplied: max_completion_tokens' },
      { ...request, max_completion_tokens: undefined, max_tokens: 40, streams: true },
      { max_tokens_field: 'max_tokens' },
    ],
    [
      'response_format',
      (call) => 'response_format' in call,
      { detail: [{ loc: ['body', 'response_format'], msg: 'Extra inputs are not permitted' }] },
      { ...request, response_format: undefined, streams: true },
      { without: ['response_format'] },
    ],
    [
      'the system role',
      ({ messages }) => messages[0]!.role === 'system',
      { message: "'messages[0].role' does not support 'system' with this model." },
      { ...request, messages: MERGED, streams: true },
      { system_role: 'user' },
    ],
  ])('%s', async (_name, ...[rejects, error, alternative, form]) => {
    server = (call) => (rejects(call) ? error : undefined);
    expect((await send()).sent?.form).toEqual(form);
    expect(sent).toEqual([{ ...request, streams: true }, alternative]);
    expect((await send()).sent?.form).toEqual(form);
    expect(sent.slice(2)).toEqual([alternative]);
    await send({}, 'another model');
    expect(sent.slice(3)).toHaveLength(2);
  });

  test('stream_options, which no recorded request has', async () => {
    server = ({ streams }) => (streams ? { param: 'stream_options' } : undefined);
    expect(await send()).not.toHaveProperty('sent');
    await send();
    expect(sent.map(({ streams }) => streams)).toEqual([true, false, false]);
  });

  test('several fields that are named one after another, or at once', async () => {
    server = (call) =>
      call.streams
        ? { message: 'Unknown parameter: stream_options' }
        : 'response_format' in call || 'max_completion_tokens' in call
          ? { message: 'Unknown parameters: response_format, max_completion_tokens' }
          : undefined;
    const answer = await send();
    expect(answer.sent?.request).toEqual({ ...bare, max_tokens: 40 });
    expect(sent).toHaveLength(3);
  });

  test('a remembered alternative that is named changes back', async () => {
    server = (call) =>
      'max_completion_tokens' in call ? { param: 'max_completion_tokens' } : undefined;
    await send();
    server = (call) =>
      'max_tokens' in call
        ? { message: "'max_tokens' is not supported. Use 'max_completion_tokens' instead." }
        : undefined;
    await send();
    await send();
    expect(sent.map((call) => 'max_tokens' in call)).toEqual([false, true, true, false, false]);
  });

  test('fields of messages that other models needed', async () => {
    const call = callWith('{"extra_content":{"google":{"thought_signature":"x"}}}');
    const wanted: ChatRequest = {
      ...bare,
      messages: [
        ...bare.messages,
        { role: 'assistant', content: null, reasoning_content: 'Hm.', tool_calls: [call] },
        { role: 'tool', content: 'r', tool_call_id: 'c' },
      ],
    };
    server = ({ messages: [, , message] }) =>
      message && 'reasoning_content' in message
        ? { message: "property 'messages.2.reasoning_content' is unsupported" }
        : JSON.stringify(message).includes('extra_content')
          ? { param: 'messages[2].tool_calls[0].extra_content', code: 'unknown_parameter' }
          : undefined;
    const { form, request: formed } = (await send({}, 'm', wanted)).sent!;
    expect(form).toEqual({ without: ['reasoning_content', 'tool_call_fields'] });
    const { extra: _extra, ...standard } = call;
    expect(formed.messages[2]).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [standard],
    });
  });
});

describe('nothing is retried or remembered', () => {
  test.each<[string, object]>([
    ['names no field', { message: 'The prompt is too long.' }],
    ['names a field that was not sent', { param: 'max_tokens' }],
    ['is about a limit', { message: 'max_completion_tokens is too large: at most 16' }],
    [
      'is about a schema',
      { message: "Invalid schema for response_format 'b'", param: 'response_format' },
    ],
    [
      'is about the prompt of one caller',
      {
        message:
          "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
        type: 'invalid_request_error',
        param: 'messages',
      },
    ],
    [
      'is about the value of a field',
      {
        message: "Invalid 'response_format.json_schema.name': string too long.",
        type: 'invalid_request_error',
        param: 'response_format.json_schema.name',
        code: 'string_above_max_length',
      },
    ],
    [
      'has a type that fits every mistake',
      {
        message: "The content was filtered for 'response_format'.",
        type: 'invalid_request_error',
      },
    ],
  ])('where a 400 %s', async (_name, error) => {
    server = () => error;
    await expect(send()).rejects.toMatchObject({ status: 400 });
    expect(sent).toHaveLength(1);
  });

  test('where the alternative is rejected, too', async () => {
    server = () => ({ message: 'max_completion_tokens and max_tokens are unknown' });
    await expect(send()).rejects.toMatchObject({ status: 400 });
    server = () => undefined;
    await send();
    expect(sent.map((call) => 'max_tokens' in call)).toEqual([false, true, false]);
  });

  test('of a field that is configured', async () => {
    server = () => ({ param: 'max_completion_tokens' });
    await expect(send({ max_tokens_field: 'max_completion_tokens' })).rejects.toThrow();
    expect(sent).toHaveLength(1);
  });
});

test('the configured form is sent at once', async () => {
  const quirks: ProviderQuirks = {
    max_tokens_field: 'max_tokens',
    stream_options: false,
    response_format: false,
    system_role: 'developer',
  };
  const [system, user] = request.messages;
  await send(quirks);
  expect(sent).toEqual([
    {
      max_tokens: 40,
      messages: [{ ...system, role: 'developer' }, user],
      model: 'm',
      streams: false,
    },
  ]);
});

test('an answer with more tokens than the limit changes the field of the limit, once', async () => {
  completion = 657;
  await send({ stream_options: false });
  await send({ stream_options: false });
  expect(sent.map(({ streams }) => streams)).toEqual([false, false]);
  server = (call) => ('max_tokens' in call ? { param: 'max_tokens' } : undefined);
  await send();
  await send();
  expect(sent.map((call) => 'max_tokens' in call)).toEqual([false, true, true, false, false]);
});

test('without a usage, the length of the answer shows that the limit was ignored', async () => {
  completion = undefined;
  content = 'x'.repeat(40 * 8);
  await send();
  content += 'x';
  await send();
  await send();
  expect(sent.map((call) => 'max_tokens' in call)).toEqual([false, false, true]);
});

describe('a long error costs little:', () => {
  /** Milliseconds of CPU time to read an error that is not about the request's form. */
  async function costOf(message: string, wanted: ChatRequest): Promise<number> {
    server = () => ({ message });
    const before = process.cpuUsage();
    await expect(send({}, 'm', wanted)).rejects.toThrow('400');
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  }

  test('with one word again and again, the time does not grow with the square of the length', async () => {
    const words = 2_000;
    await costOf('system '.repeat(words), request);
    const short = await costOf('system '.repeat(words), request);
    expect(await costOf('system '.repeat(4 * words), request)).toBeLessThan(6 * short + 50);
  });

  test('of a request whose calls have thousands of fields, it is searched for a few', async () => {
    const fields = Array.from(Array(5_000).keys(), (at) => [`field_${at}`, 1] as const);
    const call = {
      extra: JSON.stringify(Object.fromEntries(fields)),
      function: { arguments: '{}', name: 'f' },
      id: 'c',
      type: 'function' as const,
    };
    const messages = [
      ...request.messages,
      { role: 'assistant' as const, content: null, tool_calls: [call, call] },
    ];
    server = () => ({ message: 'no' });
    const includes = jest.spyOn(String.prototype, 'includes');
    try {
      await expect(send({}, 'm', { ...request, messages })).rejects.toThrow('400');
      const searched = includes.mock.calls.filter(([name]) => name.startsWith('field_'));
      expect(searched.length).toBeGreaterThan(0);
      expect(searched.length).toBeLessThan(50);
    } finally {
      includes.mockRestore();
    }
  });
});
