import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ChatRequest } from '../../shared/sessions/turns/chat.ts';
import type { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ChatModels } from '../../shared/ports/chatModel.ts';
import {
  startScriptedModel,
  type ScriptedModel,
  type Step,
} from '../support/fakes/scriptedModel.ts';

const MAX_RETRIES = 2;

/** The adapter under test, with one model `m` whose provider is at `baseUrl`. */
export interface ChatModelsUnderTest extends ChatModels {
  close(): Promise<void>;
}
export interface ContractLimits {
  attemptTimeoutMs: number;
  maxRetries: number;
}

const request: ChatRequest = {
  model: 'upstream-m',
  messages: [{ role: 'user', content: 'Hello' }],
};
const never = (): AbortSignal => new AbortController().signal;

const failure = (call: Promise<unknown>): Promise<TurnlogError> =>
  call.then(
    () => Promise.reject(new Error('the call succeeded')),
    (error: TurnlogError) => error,
  );

const overWire = (status: number, headers: Record<string, string> = {}): Step => ({
  status,
  headers,
  body: { error: { message: `scripted ${status}` } },
});

/** What every chat models adapter does, over a real connection. */
export function chatModelsContract(
  create: (baseUrl: string, limits: ContractLimits) => ChatModelsUnderTest,
): void {
  let server: ScriptedModel;
  let patient: ChatModelsUnderTest;
  let hasty: ChatModelsUnderTest;

  beforeAll(async () => {
    server = await startScriptedModel({ text: 'Hi' });
    patient = create(server.baseUrl, { attemptTimeoutMs: 30_000, maxRetries: MAX_RETRIES });
    hasty = create(server.baseUrl, { attemptTimeoutMs: 1_000, maxRetries: MAX_RETRIES });
  });
  afterAll(async () => {
    await Promise.all([patient.close(), hasty.close()]);
    await server.close();
  });

  /** How many requests arrive while `act` runs under the script. */
  async function sentDuring<T>(
    script: Step | Step[],
    act: () => Promise<T>,
  ): Promise<{ outcome: T; sent: number }> {
    const before = server.requests.length;
    server.use(script);
    const outcome = await act();
    return { outcome, sent: server.requests.length - before };
  }
  const failed = (script: Step | Step[], models: () => ChatModels = () => patient) =>
    sentDuring(script, () =>
      failure(models().complete('m', request, never(), { account_id: 'a' })),
    );

  describe('an answer', () => {
    test('carries the text, the model and the usage that the provider reported', async () => {
      server.use({
        text: 'Good day',
        model: 'upstream-m-2026',
        usage: { prompt_tokens: 11, completion_tokens: 2, total_tokens: 13 },
      });
      expect(await patient.complete('m', request, never(), { account_id: 'a' })).toEqual({
        response_id: expect.stringMatching(/^chatcmpl-/),
        model: 'upstream-m-2026',
        content: 'Good day',
        tool_calls: [],
        finish_reason: 'stop',
        tokens: { prompt: 11, completion: 2, total: 13 },
      });
    });

    test.each([
      ['no usage', null],
      ['a usage of zeros', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
    ])('has no tokens when the provider reports %s', async (_, usage) => {
      server.use({ text: 'Hi', usage });
      expect(
        (await patient.complete('m', request, never(), { account_id: 'a' })).tokens,
      ).toBeUndefined();
    });

    test('has tool calls with distinct ids, though the provider repeats one', async () => {
      const call = { id: 'call_0', name: 'f', arguments: '{}' };
      server.use({ tool_calls: [call, call, { ...call, id: 'call_0_2' }] });
      const { tool_calls } = await patient.complete('m', request, never(), { account_id: 'a' });
      expect(new Set(tool_calls.map(({ id }) => id)).size).toBe(3);
    });

    test('carries tool calls with their arguments as the model wrote them', async () => {
      server.use({
        tool_calls: [{ id: 'call_7', name: 'calculator', arguments: '{"expression": "1 +1"' }],
      });
      const answer = await patient.complete('m', request, never(), { account_id: 'a' });
      expect(answer).toMatchObject({ content: null, finish_reason: 'tool_calls' });
      expect(answer.tool_calls).toEqual([
        {
          id: 'call_7',
          type: 'function',
          function: { name: 'calculator', arguments: '{"expression": "1 +1"' },
        },
      ]);
    });

    test('of a model that refuses is its refusal', async () => {
      server.use({ refusal: 'I would rather not.' });
      expect((await patient.complete('m', request, never(), { account_id: 'a' })).content).toBe(
        'I would rather not.',
      );
    });

    test('can always be stored: NUL and lone surrogates become U+FFFD in text and arguments', async () => {
      const odd = 'a\0b\uD800c😀';
      server.use({ text: odd, tool_calls: [{ name: 'f', arguments: odd }] });
      const answer = await patient.complete('m', request, never(), { account_id: 'a' });
      expect(answer.content).toBe('a\uFFFDb\uFFFDc😀');
      expect(answer.tool_calls[0]?.function.arguments).toBe('a\uFFFDb\uFFFDc😀');
    });
  });

  test('sends exactly the request that it is given', async () => {
    const whole: ChatRequest = {
      model: 'upstream-m',
      max_completion_tokens: 77,
      tools: [
        {
          type: 'function',
          function: { name: 'f', description: 'd', parameters: { type: 'object', properties: {} } },
        },
      ],
      messages: [
        { role: 'system', content: 'Be brief. ünïcödé 😀' },
        { role: 'user', content: 'q' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', content: 'r', tool_call_id: 'c' },
      ],
    };
    server.use({ text: 'Hi' });
    await patient.complete('m', whole, never(), { account_id: 'a' });
    expect(server.bodies.at(-1)).toBe(JSON.stringify(whole));
  });

  test('an unknown model is model_not_supported, and nothing is sent', async () => {
    const { outcome, sent } = await sentDuring({ text: 'Hi' }, () =>
      failure(patient.complete('other', request, never(), { account_id: 'a' })),
    );
    expect(outcome.code).toBe('model_not_supported');
    expect(sent).toBe(0);
  });

  describe('a refusal by the provider', () => {
    test.each([400, 401, 403, 404, 422])(
      'with %i is model_error, and is not repeated',
      async (status) => {
        const { outcome, sent } = await failed(overWire(status));
        expect(outcome).toMatchObject({
          name: 'TurnlogError',
          code: 'model_error',
          retriable: false,
        });
        expect(outcome.message).toContain(String(status));
        expect(sent).toBe(1);
      },
    );
  });

  describe('a provider that fails for a while', () => {
    test.each<[string, Step]>([
      ['500', overWire(500)],
      ['429 with retry-after', overWire(429, { 'retry-after': '0.01' })],
      ['429 without retry-after', overWire(429)],
      ['a reset before the answer', { fault: 'reset_before_answer' }],
    ])('with %s is asked again, with the same request', async (_, fault) => {
      const { outcome, sent } = await sentDuring([fault, { text: 'back' }], () =>
        patient.complete('m', request, never(), { account_id: 'a' }),
      );
      expect(outcome.content).toBe('back');
      expect(sent).toBe(2);
      expect(server.bodies.at(-1)).toBe(server.bodies.at(-2));
    });
  });

  describe('a provider that fails for ever', () => {
    test.each<[string, Step, string]>([
      ['429', overWire(429, { 'retry-after-ms': '1' }), 'model_overloaded'],
      ['503', overWire(503, { 'retry-after-ms': '1' }), 'model_overloaded'],
      ['500', overWire(500, { 'retry-after-ms': '1' }), 'model_error'],
      ['504', overWire(504, { 'retry-after-ms': '1' }), 'model_error'],
      ['resets before the answer', { fault: 'reset_before_answer' }, 'model_error'],
    ])('with %s is asked as often as the limit allows', async (_, fault, code) => {
      const { outcome, sent } = await failed(fault);
      expect(outcome).toMatchObject({ name: 'TurnlogError', code, retriable: true });
      expect(sent).toBe(1 + MAX_RETRIES);
    });

    test('with a retry-after tells how long to wait, and a long one is not waited for', async () => {
      const { outcome, sent } = await failed(overWire(429, { 'retry-after': '3600' }));
      expect(outcome).toMatchObject({ code: 'model_overloaded', retryAfterSeconds: 3600 });
      expect(sent).toBe(1);
    });

    test('without a retry-after tells to wait a second', async () => {
      const { outcome } = await failed([
        overWire(429, { 'retry-after-ms': '1' }),
        overWire(429, { 'retry-after-ms': '1' }),
        overWire(429),
      ]);
      expect(outcome.retryAfterSeconds).toBe(1);
    });
  });

  describe('an answer that is none', () => {
    test.each<[string, Step]>([
      ['malformed JSON', { fault: 'malformed_json' }],
      ['no choices', { fault: 'no_choices' }],
      ['JSON of another shape', { status: 200, body: '[]' }],
      [
        'a page of HTML',
        { status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>It works!</h1>' },
      ],
      ['an empty body', { status: 200, body: '' }],
      ['no content', { status: 204, body: '' }],
      ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:9/' } }],
      ['more than 2 MiB', { text: 'x'.repeat(LIMITS.model.answerBytes) }],
      ['a body that breaks off', { fault: 'reset_in_body' }],
    ])('because of %s is model_error, and is not asked for again', async (_, step) => {
      const { outcome, sent } = await failed(step);
      expect(outcome).toMatchObject({ name: 'TurnlogError', code: 'model_error' });
      expect(sent).toBe(1);
    });
  });

  describe('an attempt that takes too long', () => {
    test.each<[string, Step]>([
      ['nothing ever comes', { fault: 'never_answer' }],
      ['the body does not begin', { fault: 'stall_after_headers' }],
      ['the body stalls', { fault: 'stall_in_body' }],
    ])(
      'because %s is model_timeout, lets go of the connection and is not repeated',
      async (_, step) => {
        const abandoned = server.abandonedSoFar() + 1;
        const { outcome, sent } = await failed(step, () => hasty);
        expect(outcome).toMatchObject({
          name: 'TurnlogError',
          code: 'model_timeout',
          retriable: true,
        });
        expect(sent).toBe(1);
        await server.abandoned(abandoned);
      },
    );
  });

  describe('an aborted call', () => {
    const reason = new Error('the run is over');

    test.each<[string, Step]>([
      ['while it waits for the answer', { fault: 'never_answer' }],
      ['while it reads the answer', { fault: 'stall_in_body' }],
    ])('ends with the reason of the signal %s, and lets go of the connection', async (_, step) => {
      const { received, abandoned } = {
        received: server.requests.length + 1,
        abandoned: server.abandonedSoFar() + 1,
      };
      server.use(step);
      const abort = new AbortController();
      const outcome = failure(patient.complete('m', request, abort.signal, { account_id: 'a' }));
      await server.received(received);
      abort.abort(reason);
      expect(await outcome).toBe(reason);
      await server.abandoned(abandoned);
    });

    test('ends with the reason of the signal while it waits for a retry-after, and sends nothing more', async () => {
      const before = server.requests.length;
      const answeredBefore = server.answeredSoFar();
      server.use([overWire(429, { 'retry-after': '15' }), { text: 'too late' }]);
      const abort = new AbortController();
      const outcome = failure(patient.complete('m', request, abort.signal, { account_id: 'a' }));
      await server.answered(answeredBefore + 1);
      abort.abort(reason);
      expect(await outcome).toBe(reason);
      expect(server.requests.length).toBe(before + 1);
    });

    test('sends nothing when the signal has aborted before', async () => {
      const { outcome, sent } = await sentDuring({ text: 'Hi' }, () =>
        failure(patient.complete('m', request, AbortSignal.abort(reason), { account_id: 'a' })),
      );
      expect(outcome).toBe(reason);
      expect(sent).toBe(0);
    });
  });

  test('a provider that nobody runs is model_error', async () => {
    const gone = await startScriptedModel({ text: 'Hi' });
    await gone.close();
    const models = create(gone.baseUrl, { attemptTimeoutMs: 30_000, maxRetries: 0 });
    expect(
      await failure(models.complete('m', request, never(), { account_id: 'a' })),
    ).toMatchObject({
      code: 'model_error',
      retriable: true,
    });
    await models.close();
  });
}
