import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  createChatModels,
  type ChatModelLimits,
  type Provider,
} from '../../../infra/openai/chatModels.ts';
import { retryAfterMs } from '../../../infra/openai/pooledFetch.ts';
import type { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { ModelInfo } from '../../../shared/ports/chatModel.ts';
import { chatModelsContract } from '../../contracts/chatModels.ts';
import { hostileModelServerContract } from '../../contracts/hostileModelServer.ts';
import { streamedChatModelsContract } from '../../contracts/streamedChatModels.ts';
import { startScriptedModel } from '../../support/fakes/scriptedModel.ts';

const model: ModelInfo = {
  id: 'm',
  provider: 'p',
  upstream_model: 'upstream-m',
  context_window: 1000,
};
const models = (
  provider: Omit<Provider, 'id'>,
  limits: ChatModelLimits = { attemptTimeoutMs: 30_000, maxRetries: 0 },
) => createChatModels({ providers: [{ id: 'p', ...provider }], models: [model], limits });

describe('chat models over the openai package', () => {
  chatModelsContract((base_url, limits) => models({ base_url, api_key: 'test-key' }, limits));

  describe('against a hostile server', () =>
    hostileModelServerContract((base_url, limits) => models({ base_url }, limits)));

  describe('with a stream', () =>
    streamedChatModelsContract((base_url, limits) => models({ base_url }, limits)));

  const cleanups: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup();
  });

  async function ask(
    provider: { api_key?: string },
    script: Parameters<typeof startScriptedModel>[0],
    onDelta?: (text: string) => void,
  ) {
    const server = await startScriptedModel(script);
    const chat = models({ base_url: server.baseUrl, ...provider });
    cleanups.push(
      () => chat.close(),
      () => server.close(),
    );
    const outcome = await chat
      .complete(
        'm',
        { model: 'upstream-m', messages: [{ role: 'user', content: 'Hi' }] },
        new AbortController().signal,
        onDelta,
      )
      .catch((error: TurnlogError) => error);
    return { outcome, headers: server.headers[0] };
  }

  test("sends the provider's key to the provider", async () => {
    for (const onDelta of [undefined, () => undefined]) {
      const { headers } = await ask({ api_key: 'secret-of-p' }, { text: 'Hi' }, onDelta);
      expect(headers?.authorization).toBe('Bearer secret-of-p');
    }
  });

  test('sends no credentials to a provider that has no key, whatever the environment holds', async () => {
    const before = { ...process.env };
    Object.assign(process.env, {
      OPENAI_API_KEY: 'sk-not-for-you',
      OPENAI_ORG_ID: 'org-not-for-you',
    });
    try {
      for (const onDelta of [undefined, () => undefined]) {
        const { headers } = await ask({}, { text: 'Hi' }, onDelta);
        expect(headers).not.toHaveProperty('authorization');
        expect(JSON.stringify(headers)).not.toContain('not-for-you');
      }
    } finally {
      process.env = before;
    }
  });

  /** What the caller is told, and what the log may quote. */
  const refusedWith = async (provider: { api_key?: string }, status: number, body: object) => {
    const { outcome } = await ask(provider, { status, body });
    const { message, cause } = outcome as TurnlogError;
    return { message, quoted: (cause as Error).message };
  };

  test("tells our words, and quotes the provider's, shortened and without anything that looks like a key", async () => {
    const said = `Bad field \u0000 for key sk-proj-abc123456789 and secret-of-p at https://me:pw@host/v1, ${'long '.repeat(200)}`;
    const { message, quoted } = await refusedWith({ api_key: 'secret-of-p' }, 400, {
      error: { message: said },
    });
    expect(message).toBe('The model provider refused the request (400).');
    expect(quoted).toMatch(/^400 Bad field for key \[redacted\] and \[redacted\] at https:/);
    expect(quoted).not.toMatch(/abc123|secret-of-p|me:pw/);
    expect(quoted.length).toBe(200);
  });

  test('quotes no key of another provider, and no half of one where it cuts', async () => {
    const server = await startScriptedModel({
      status: 400,
      body: { error: { message: `plain-words ${'y '.repeat(490)}sk-proj-abc123456789` } },
    });
    const chat = createChatModels({
      providers: [
        { id: 'p', base_url: server.baseUrl, api_key: 'key-of-p' },
        { id: 'q', base_url: server.baseUrl, api_key: 'plain-words' },
      ],
      models: [model],
      limits: { attemptTimeoutMs: 30_000, maxRetries: 0 },
    });
    cleanups.push(
      () => chat.close(),
      () => server.close(),
    );
    const request = { model: 'm', messages: [] };
    const error = await chat
      .complete('m', request, new AbortController().signal)
      .catch((thrown: TurnlogError) => thrown);
    const { message } = (error as TurnlogError).cause as Error;
    expect(message).toMatch(/^400 \[redacted\] y y/);
    expect(message).not.toMatch(/plain|sk-/);
  });

  const key = 'sk-live-9fQ2/xT+7Lm3Zr8Vb1Kc5Nd0Wp4Yh6Gs';
  test.each<[string, string]>([
    ['over several lines', key.match(/.{1,6}/g)!.join('\r\n')],
    ['sign by sign', key.match(/./g)!.join(' ')],
    ['with commas between', key.match(/.{1,9}/g)!.join(', ')],
    ['percent-encoded', Buffer.from(key).toString('hex').replaceAll(/../g, '%$&')],
    ['escaped as in JSON', Buffer.from(key).toString('hex').replaceAll(/../g, '\\u00$&')],
    [
      'without its ends',
      key
        .slice(12, -12)
        .match(/.{1,7}/g)!
        .join('-'),
    ],
    [
      'in base64 by lines',
      Buffer.from(key)
        .toString('base64')
        .match(/.{1,19}/g)!
        .join('\n'),
    ],
    [
      'in credentials',
      Buffer.from(`u:${key}`)
        .toString('base64')
        .match(/.{1,19}/g)!
        .join('\n'),
    ],
    [
      'in base64url',
      Buffer.from(`me:${key}`)
        .toString('base64url')
        .match(/.{1,9}/g)!
        .join(' '),
    ],
    ['in hexadecimal', Buffer.from(key).toString('hex').match(/../g)!.join(':')],
  ])('quotes nothing of a text that shows the key %s', async (_, shown) => {
    const { quoted } = await refusedWith({ api_key: key }, 400, { error: `Bad key ${shown}.` });
    const { quoted: message } = await refusedWith({ api_key: key }, 400, {
      error: { message: `Bad key ${shown}.` },
    });
    expect([quoted, message]).toEqual(Array(2).fill('[redacted: shows a key]'));
  });

  test.each([
    "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.",
    'The model gpt-4o-audio-preview-2025-06-03 does not exist.',
    'This key has no access: api_key_invalid.',
  ])('quotes %s as it is', async (said) => {
    expect((await refusedWith({}, 404, { error: { message: said } })).quoted).toBe(`404 ${said}`);
  });

  test.each([
    'gsk_a1b2c3d4e5',
    'Bearer abc.def',
    'sk-****1234',
    '0123456789abcdef0123456789abcdef',
    'AIzaSyA1234567890abcdefghij',
  ])('never quotes %s', async (secret) => {
    const body = { error: { message: `Bad: ${secret} is no key` } };
    expect((await refusedWith({}, 400, body)).quoted).toBe('400 Bad: [redacted] is no key');
  });

  test.each([
    [
      400,
      'context_length_exceeded',
      'refused the request (400): the prompt is longer than the model takes',
    ],
    [400, 'content_filter', 'refused the request (400): its content filter stopped it'],
    [404, 'model_not_found', 'refused the request (404): it does not have the model'],
    [429, 'insufficient_quota', 'takes no more requests now (429): the quota is used up'],
    [500, 'something_of_its_own', 'failed (500)'],
    [400, { evil: true }, 'refused the request (400)'],
    [401, 'invalid_api_key', 'did not accept the configured credentials (401)'],
  ])('tells of %i %j that it %s', async (status, code, words) => {
    const body = { error: { message: 'Their words.', code } };
    expect((await refusedWith({}, status, body)).message).toBe(`The model provider ${words}.`);
  });

  test.each([
    [{ 'retry-after-ms': '1500' }, 1_500],
    [{ 'retry-after': '2' }, 2_000],
    [{ 'retry-after': 'Fri, 20 Nov 2026 10:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Fri, 20 Nov 2026 09:00:00 GMT' }, 0],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ])('reads %j as a wait of %s ms', (headers, wait) => {
    expect(
      retryAfterMs(
        new Headers(headers as Record<string, string>),
        Date.parse('2026-11-20T10:00:00Z'),
      ),
    ).toBe(wait);
  });

  test('gives a tool call without an id one of its own', async () => {
    const body = {
      id: 'x',
      choices: [
        {
          message: {
            content: null,
            tool_calls: [
              { function: { name: 'f', arguments: '{}' } },
              { function: { name: 'f', arguments: null } },
            ],
          },
        },
      ],
    };
    const { outcome } = await ask({}, { status: 200, body });
    expect(outcome).toMatchObject({
      model: 'upstream-m',
      finish_reason: '',
      tokens: undefined,
      tool_calls: [{ id: 'call_1' }, { id: 'call_2', function: { arguments: '' } }],
    });
  });

  test('never sends a call that was aborted while it waited for a connection', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const server = await startScriptedModel(() => released.then(() => ({ text: 'Hi' })));
    const chat = models(
      { base_url: server.baseUrl },
      { attemptTimeoutMs: 30_000, maxRetries: 0, maxConnections: 1 },
    );
    cleanups.push(
      () => chat.close(),
      () => server.close(),
    );
    const say = (content: string, signal = new AbortController().signal) =>
      chat.complete('m', { model: 'upstream-m', messages: [{ role: 'user', content }] }, signal);
    const first = say('first');
    await server.received(1);
    const abort = new AbortController();
    const waiting = say('waiting', abort.signal);
    // The way from the call to the queue for the one connection is microtasks only.
    await setImmediate();
    abort.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    release();
    await first;
    await say('last');
    expect(server.requests.map((request) => request.messages[0]?.content)).toEqual([
      'first',
      'last',
    ]);
  });

  test('lists its models in order and finds them by id', () => {
    const other = { ...model, id: 'a' };
    const chat = createChatModels({
      providers: [],
      models: [model, other],
      limits: { attemptTimeoutMs: 1, maxRetries: 0 },
    });
    expect(chat.list()).toEqual([model, other]);
    expect(chat.find('a')).toBe(other);
    expect(chat.find('b')).toBeUndefined();
  });
});
