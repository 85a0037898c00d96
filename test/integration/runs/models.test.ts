import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import { createChatModels, type ChatModelLimits } from '../../../infra/openai/chatModels.ts';
import type { Provider } from '../../../infra/openai/openProvider.ts';
import { retryAfterMs } from '../../../infra/openai/pooledFetch.ts';
import { createMemoryLedger } from '../../../shared/lib/memory/ledger.ts';
import type { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { ModelCaller, ModelInfo } from '../../../shared/ports/chatModel.ts';
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
const models = (provider: Omit<Provider, 'id'>, limits: Partial<ChatModelLimits> = {}) =>
  createChatModels({
    providers: [{ id: 'p', ...provider }],
    models: [model],
    limits: { attemptTimeoutMs: 30_000, maxRetries: 0, maxConnections: 256, ...limits },
    memory: createMemoryLedger(),
  });

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
    caller: ModelCaller = { account_id: 'a' },
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
        caller,
      )
      .catch((error: TurnlogError) => error);
    return { outcome, headers: server.headers[0] };
  }

  test("sends the provider's key to the provider", async () => {
    for (const caller of [undefined, { account_id: 'a', onDelta: () => undefined }]) {
      const { headers } = await ask({ api_key: 'secret-of-p' }, { text: 'Hi' }, caller);
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
      for (const caller of [undefined, { account_id: 'a', onDelta: () => undefined }]) {
        const { headers } = await ask({}, { text: 'Hi' }, caller);
        expect(headers).not.toHaveProperty('authorization');
        expect(JSON.stringify(headers)).not.toContain('not-for-you');
      }
    } finally {
      process.env = before;
    }
  });

  /** What the caller is told, and what the log may say of it. */
  const refusedWith = async (status: number, error: object | string) => {
    const { outcome } = await ask({ api_key: 'secret-of-p' }, { status, body: { error } });
    const { message, cause } = outcome as TurnlogError;
    return { message, logged: (cause as Error).message };
  };

  test.each<[object | string, string]>([
    [{ message: 'No: "my prompt", key secret-of-p, sk-proj-abc123456789' }, '400'],
    ['my prompt', '400'],
    [{ type: 'my prompt', code: 'my_prompt', param: 'my.prompt' }, '400'],
    [{ type: { my: 'prompt' }, code: 7, param: ['messages'] }, '400'],
    [
      { type: 'invalid_request_error', code: 'unsupported_value', param: 'temperature' },
      '400 invalid_request_error unsupported_value temperature',
    ],
    [{ param: 'messages[0].content.my prompt' }, '400 messages'],
    [{ param: 'modelprompt' }, '400'],
  ])('keeps nothing of the error %j but what it names', async (error, logged) => {
    expect(await refusedWith(400, error)).toEqual({
      message: 'The model provider refused the request (400).',
      logged,
    });
  });

  test('keeps nothing of an answer that is no JSON', async () => {
    const { outcome } = await ask({}, { fault: 'malformed_json' });
    expect((outcome as TurnlogError).cause).toEqual(new Error('SyntaxError'));
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
    const error = { message: 'Their words.', code };
    expect((await refusedWith(status, error)).message).toBe(`The model provider ${words}.`);
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
    const chat = models({ base_url: server.baseUrl }, { maxConnections: 1 });
    cleanups.push(
      () => chat.close(),
      () => server.close(),
    );
    const say = (content: string, signal = new AbortController().signal) =>
      chat.complete('m', { model: 'upstream-m', messages: [{ role: 'user', content }] }, signal, {
        account_id: 'a',
      });
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

  test('sends a request and its repetition with the same headers', async () => {
    const server = await startScriptedModel([
      { status: 500, headers: { 'retry-after-ms': '1' }, body: '{}' },
      { text: 'Hi' },
    ]);
    const chat = models({ base_url: server.baseUrl, api_key: 'k' }, { maxRetries: 1 });
    cleanups.push(
      () => chat.close(),
      () => server.close(),
    );
    await chat.complete('m', { model: 'm', messages: [] }, new AbortController().signal, {
      account_id: 'a',
    });
    const [first, second] = server.headers;
    expect(second).toEqual(first);
  });

  test('lists its models in order and finds them by id', () => {
    const other = { ...model, id: 'a' };
    const chat = createChatModels({
      providers: [],
      models: [model, other],
      limits: { attemptTimeoutMs: 1, maxRetries: 0, maxConnections: 1 },
      memory: createMemoryLedger(),
    });
    expect(chat.list()).toEqual([model, other]);
    expect(chat.find('a')).toBe(other);
    expect(chat.find('b')).toBeUndefined();
  });
});
