import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { isTurnlogError, type TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { heapBytesFor } from '../../shared/lib/memory/ledger.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ChatAnswer, ChatModels } from '../../shared/ports/chatModel.ts';
import {
  startScriptedModel,
  type ScriptedModel,
  type Step,
} from '../support/fakes/scriptedModel.ts';
import type { ChatModelsUnderTest, ContractLimits } from './chatModels.ts';

const MIB = 1_048_576;
const limits = LIMITS.model;

/** An answer of one choice, with other parts for some of it. */
const completion = (choice: object, more: object = {}): Step => ({
  status: 200,
  body: { id: 'r', model: 'm', choices: [{ finish_reason: 'stop', ...choice }], ...more },
});
const saying = (content: string, more: object = {}): Step =>
  completion({ message: { content } }, more);
const calling = (...calls: { id?: string; name: string; arguments: string }[]): Step =>
  completion({
    message: {
      content: null,
      tool_calls: calls.map(({ id, ...called }) => ({ id: id ?? 'c', function: called })),
    },
  });
const usage = (prompt_tokens: number, completion_tokens: number): Step =>
  saying('Hi', { usage: { prompt_tokens, completion_tokens } });

/** Writes again and again, until the other side has had enough. */
async function flood(response: ServerResponse, chunk: string): Promise<void> {
  const closed = once(response, 'close');
  while (!response.destroyed)
    if (!response.write(chunk)) await Promise.race([once(response, 'drain'), closed]);
}
const json = { 'content-type': 'application/json' };
const endless = (status: number, chunk: string): Step => ({
  respond(response) {
    response.writeHead(status, json);
    void flood(response, chunk);
  },
});

/** What every chat models adapter bears from a server that means ill. */
export function hostileModelServerContract(
  create: (baseUrl: string, limits: ContractLimits) => ChatModelsUnderTest,
): void {
  let server: ScriptedModel;
  let models: ChatModelsUnderTest;
  beforeAll(async () => {
    server = await startScriptedModel({ text: 'Hi' });
    models = create(server.baseUrl, { attemptTimeoutMs: 30_000, maxRetries: 0 });
  });
  afterAll(async () => {
    await models.close();
    await server.close();
  });

  const ask = (step: Step, by: ChatModels = models): Promise<ChatAnswer | TurnlogError> => {
    server.use(step);
    const request = { model: 'm', messages: [{ role: 'user' as const, content: 'Hello' }] };
    return by
      .complete('m', request, new AbortController().signal, { account_id: 'a' })
      .catch((error: unknown) => {
        if (isTurnlogError(error)) return error;
        throw error;
      });
  };

  describe('an answer that can not be used', () => {
    const longName = 'f'.repeat(limits.functionNameChars + 1);
    const longId = 'i'.repeat(limits.callIdChars + 1);
    const longArguments = ' '.repeat(limits.argumentsChars + 1);
    test.each<[string, Step, RegExp]>([
      ['without an end', endless(200, ' '.repeat(65_536)), /is longer than 2,097,152 bytes/],
      [
        'that says how long it is, and never comes',
        {
          respond(response) {
            response.writeHead(200, { ...json, 'content-length': limits.answerBytes + 1 });
            response.write(' ');
          },
        },
        /is longer than 2,097,152 bytes/,
      ],
      ['of brackets', { status: 200, body: '['.repeat(MIB) }, /has too many parts/],
      ['of empty objects', { status: 200, body: `[${'{},'.repeat(300_000)}{}]` }, /too many parts/],
      [
        'of choices',
        { status: 200, body: { choices: Array.from({ length: 30_000 }, () => 1) } },
        /too many parts/,
      ],
      [
        'that is compressed',
        {
          respond(response) {
            response.writeHead(200, { ...json, 'content-encoding': 'gzip' });
            response.end(gzipSync(Buffer.alloc(64 * MIB)));
          },
        },
        /is compressed/,
      ],
      [
        'that is an error',
        { status: 200, body: { error: { code: 'insufficient_quota' } } },
        /answered with an error: the quota is used up\.$/,
      ],
      [
        'that an error ended',
        completion({ finish_reason: 'error', message: { content: 'Half of' } }),
        /broke off its answer with an error\.$/,
      ],
      [
        'that is not HTTP',
        { respond: (response) => void response.socket!.end('+OK\r\n') },
        /answered with something that is not HTTP \(HTTPParserError\)\.$/,
      ],
      [
        'with a function name without an end',
        calling({ name: longName, arguments: '' }),
        /too long/,
      ],
      [
        'with a call id without an end',
        calling({ id: longId, name: 'f', arguments: '' }),
        /too long/,
      ],
      [
        'with arguments without an end',
        calling({ name: 'f', arguments: longArguments }),
        /too long/,
      ],
    ])('%s is model_error', async (_, step, words) => {
      const outcome = await ask(step);
      expect(outcome).toMatchObject({ code: 'model_error', message: expect.stringMatching(words) });
    });
  });

  test('an answer that is empty is one without a text', async () => {
    const counted = { usage: { prompt_tokens: 2, completion_tokens: 3 } };
    const step = completion({ finish_reason: 'length', message: { content: '' } }, counted);
    expect(await ask(step)).toMatchObject({
      content: null,
      tool_calls: [],
      finish_reason: 'length',
      tokens: { total: 5 },
    });
  });

  test('an answer that was cut off is one, and says how it ended', async () => {
    expect(
      await ask(completion({ finish_reason: 'length', message: { content: 'The answer is' } })),
    ).toMatchObject({ content: 'The answer is', finish_reason: 'length' });
  });

  test('names that the provider gives to its answer are cut', async () => {
    const long = 'x'.repeat(MIB / 2);
    const outcome = await ask(
      completion(
        { finish_reason: long, message: { content: 'Hi' } },
        { id: long, model: `${'x'.repeat(limits.labelChars - 1)}😀` },
      ),
    );
    const label = 'x'.repeat(limits.labelChars);
    expect(outcome).toMatchObject({
      response_id: label,
      finish_reason: '',
      model: 'm',
    });
  });

  test('a model named __proto__ is the requested one', async () => {
    const step = completion({ finish_reason: '__proto__', message: { content: 'Hi' } });
    const named = { ...step, body: { ...(step as { body: object }).body, model: '__proto__' } };
    expect(await ask(named)).toMatchObject({ model: 'm', finish_reason: '' });
  });

  test.each([
    [-1, 1],
    [1, 1.5],
    [1e308, 1],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  ])('a usage of %d and %d tokens is none', async (prompt, completed) => {
    expect(await ask(usage(prompt, completed))).toMatchObject({ tokens: undefined });
  });

  describe('an error', () => {
    const long = 'word '.repeat((7 * MIB) / 5);
    test.each<[string, Step]>([
      ['of 7 MiB', { status: 400, body: { error: { message: long } } }],
      ['of 7 MiB without a break', { status: 400, body: '1a'.repeat(3.5 * MIB) }],
      ['without an end', endless(400, 'word '.repeat(10_000))],
      [
        'of 7 MiB that is compressed',
        {
          respond(response) {
            response.writeHead(400, { ...json, 'content-encoding': 'gzip' });
            response.end(gzipSync(Buffer.alloc(7 * MIB)));
          },
        },
      ],
    ])('%s is told in our words, and not quoted', async (_, step) => {
      const outcome = (await ask(step)) as TurnlogError;
      expect(outcome).toMatchObject({ code: 'model_error' });
      expect(outcome.message).toBe('The model provider refused the request (400).');
      const { cause } = outcome as { cause: Error };
      expect(cause.message).toBe('400');
      // Whoever logs the error whole finds nothing else of the provider's in it.
      expect(Object.keys(cause)).toEqual([]);
      expect(cause.cause).toBeUndefined();
    });

    test('that asks to be repeated is not repeated beyond the limit', async () => {
      const before = server.requests.length;
      await ask({ status: 400, headers: { 'x-should-retry': 'true' }, body: {} });
      expect(server.requests.length - before).toBe(1);
    });
  });

  test('headers without an end are model_error', async () => {
    const headers = Array.from({ length: 100 }, (_, index) => [`x-${index}`, 'y'.repeat(1_024)]);
    const outcome = await ask({
      status: 200,
      headers: Object.fromEntries(headers) as Record<string, string>,
      body: {},
    });
    expect(outcome).toMatchObject({
      code: 'model_error',
      message: expect.stringContaining('headers that are too long'),
    });
  });

  test('a redirect is not followed', async () => {
    const target = await startScriptedModel({ text: 'Hi' });
    try {
      const headers = { location: `${target.baseUrl}/chat/completions` };
      expect(await ask({ status: 307, headers, body: '' })).toMatchObject({ code: 'model_error' });
      expect(target.requests).toEqual([]);
    } finally {
      await target.close();
    }
  });

  test('an answer a byte at a time, with hints before it, is read', async () => {
    const body = JSON.stringify({ choices: [{ message: { content: 'y'.repeat(20_000) } }] });
    const outcome = await ask({
      respond(response) {
        response.writeEarlyHints({ link: '</style.css>; rel=preload' });
        response.writeHead(200, json);
        for (const byte of body) response.write(byte);
        response.end();
      },
    });
    expect(outcome).toMatchObject({ content: 'y'.repeat(20_000) });
  });

  test('a trickle that never ends is model_timeout', async () => {
    const hasty = create(server.baseUrl, { attemptTimeoutMs: 500, maxRetries: 0 });
    try {
      const outcome = await ask(
        {
          respond(response) {
            response.writeHead(200, json);
            const trickle = async (): Promise<void> => {
              for (let bytes = 0; bytes < 10_000 && !response.destroyed; bytes += 1) {
                response.write(' ');
                await sleep(20);
              }
            };
            void trickle();
          },
        },
        hasty,
      );
      expect(outcome).toMatchObject({ code: 'model_timeout' });
    } finally {
      await hasty.close();
    }
  });

  test('long answers of an account that are read at one time have a bound together', async () => {
    const share = heapBytesFor('modelAnswers') / 2;
    const count = 1 + Math.ceil(share / limits.answerBytes);
    const many = create(server.baseUrl, { attemptTimeoutMs: 60_000, maxRetries: 0 });
    const responses: ServerResponse[] = [];
    try {
      const step: Step = {
        respond(response) {
          responses.push(response);
          response.writeHead(200, json);
          response.write(' '.repeat(limits.answerBytes - 1));
        },
      };
      const first = await Promise.race(Array.from({ length: count }, () => ask(step, many)));
      expect(first).toMatchObject({ code: 'model_overloaded', retryAfterSeconds: 1 });
    } finally {
      for (const response of responses) response.destroy();
      await many.close();
    }
    // What was held for them has been given back.
    expect(await ask(saying('Hi'))).toMatchObject({ content: 'Hi' });
  });
}
