import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  createChatModels,
  type ChatModelLimits,
  type Provider,
} from '../../../infra/openai/chatModels.ts';
import { retryAfterMs } from '../../../infra/openai/pooledFetch.ts';
import type { TurnlogError } from '../../../shared/errors.ts';
import type { ModelInfo } from '../../../shared/ports/chatModel.ts';
import { chatModelsContract } from '../../contracts/chatModels.ts';
import { startScriptedModel } from '../../support/http/scriptedModel.ts';

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

  const cleanups: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup();
  });

  async function ask(
    provider: { api_key?: string },
    script: Parameters<typeof startScriptedModel>[0],
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
      )
      .catch((error: TurnlogError) => error);
    return { outcome, headers: server.headers[0] };
  }

  test("sends the provider's key to the provider", async () => {
    expect((await ask({ api_key: 'secret-of-p' }, { text: 'Hi' })).headers?.authorization).toBe(
      'Bearer secret-of-p',
    );
  });

  test('sends no credentials to a provider that has no key, whatever the environment holds', async () => {
    const before = { ...process.env };
    Object.assign(process.env, {
      OPENAI_API_KEY: 'sk-not-for-you',
      OPENAI_ORG_ID: 'org-not-for-you',
    });
    try {
      const { headers } = await ask({}, { text: 'Hi' });
      expect(headers).not.toHaveProperty('authorization');
      expect(JSON.stringify(headers)).not.toContain('not-for-you');
    } finally {
      process.env = before;
    }
  });

  test("repeats a provider's own words, shortened and without anything that looks like a key", async () => {
    const message = `Bad field \u0000 for key sk-proj-abc123456789 and secret-of-p at https://me:pw@host/v1, ${'long '.repeat(200)}`;
    const { outcome } = await ask(
      { api_key: 'secret-of-p' },
      { status: 400, body: { error: { message } } },
    );
    const shown = (outcome as TurnlogError).message;
    expect(shown).toMatch(
      /^The model provider refused the request \(400\): Bad field for key \[redacted\] and \[redacted\] at https:/,
    );
    expect(shown).not.toMatch(/abc123|secret-of-p|me:pw/);
    expect(shown.length).toBeLessThan(360);
    expect((outcome as TurnlogError).cause).toBeInstanceOf(Error);
  });

  test.each([
    "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.",
    'The model gpt-4o-audio-preview-2025-06-03 does not exist.',
    'This key has no access: api_key_invalid.',
  ])('repeats %s as it is', async (message) => {
    const { outcome } = await ask({}, { status: 404, body: { error: { message } } });
    expect((outcome as TurnlogError).message).toContain(message);
  });

  test.each([
    'gsk_a1b2c3d4e5',
    'Bearer abc.def',
    'sk-****1234',
    '0123456789abcdef0123456789abcdef',
    'AIzaSyA1234567890abcdefghij',
  ])('never repeats %s', async (secret) => {
    const { outcome } = await ask(
      {},
      { status: 400, body: { error: { message: `Bad: ${secret} is no key` } } },
    );
    expect((outcome as TurnlogError).message).toBe(
      'The model provider refused the request (400): Bad: [redacted] is no key',
    );
  });

  test("does not repeat a provider's words about credentials", async () => {
    const { outcome } = await ask(
      { api_key: 'k1' },
      {
        status: 401,
        body: { error: { message: 'Incorrect API key provided: k1. See your account.' } },
      },
    );
    expect((outcome as TurnlogError).message).toBe(
      'The model provider did not accept the configured credentials (401).',
    );
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
