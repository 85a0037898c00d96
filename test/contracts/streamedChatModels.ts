import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ChatRequest } from '../../shared/sessions/turns/chat.ts';
import type { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ChatAnswer } from '../../shared/ports/chatModel.ts';
import {
  startScriptedModel,
  type ScriptedModel,
  type Step,
} from '../support/fakes/scriptedModel.ts';
import { chunkOf, eventOf } from '../support/fakes/scriptedStream.ts';
import type { ChatModelsUnderTest, ContractLimits } from './chatModels.ts';

const request: ChatRequest = {
  model: 'upstream-m',
  messages: [{ role: 'user', content: 'Hello' }],
};
const DONE = 'data: [DONE]\n\n';
const END = chunkOf({}, { finish_reason: 'stop' });

/** A stream of these texts, each written by itself. */
const stream = (...parts: (string | Buffer)[]): Step => ({
  async respond(response) {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const part of parts) await written(response, part);
    response.end();
  },
});
const written = (response: ServerResponse, part: string | Buffer): Promise<void> =>
  new Promise((resolve) => response.write(part, () => setImmediate(resolve)));

/** Writes again and again, until the other side has had enough. */
const endless = (part: string): Step => ({
  respond(response) {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const flood = async (): Promise<void> => {
      const closed = once(response, 'close');
      while (!response.destroyed)
        if (!response.write(part)) await Promise.race([once(response, 'drain'), closed]);
    };
    void flood();
  },
});

/** What every chat models adapter does of whom the text is wanted as it comes. */
export function streamedChatModelsContract(
  create: (baseUrl: string, limits: ContractLimits) => ChatModelsUnderTest,
): void {
  let server: ScriptedModel;
  let models: ChatModelsUnderTest;
  beforeAll(async () => {
    server = await startScriptedModel({ text: 'Hi' });
    models = create(server.baseUrl, { attemptTimeoutMs: 30_000, maxRetries: 2 });
  });
  afterAll(async () => {
    await models.close();
    await server.close();
  });

  /** What came of the call, and the pieces that were shown. */
  async function asked(step: Step | Step[], signal = new AbortController().signal) {
    server.use(step);
    const before = server.requests.length;
    const shown: string[] = [];
    const outcome = await models
      .complete('m', request, signal, { account_id: 'a', onDelta: (text) => shown.push(text) })
      .catch((error: TurnlogError) => error);
    return { outcome, shown, sent: server.requests.length - before };
  }
  const answerOf = async (step: Step): Promise<ChatAnswer> =>
    (await asked(step)).outcome as ChatAnswer;

  test('asks for a stream with its usage, and for none where nobody wants it', async () => {
    await asked({ text: 'Hi' });
    expect(JSON.parse(server.bodies.at(-1)!)).toEqual({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    });
    await models.complete('m', request, new AbortController().signal, { account_id: 'a' });
    expect(JSON.parse(server.bodies.at(-1)!)).toEqual(request);
  });

  test('shows the text as it comes, and answers what the provider would have answered at once', async () => {
    const usage = { prompt_tokens: 11, completion_tokens: 2, total_tokens: 13 };
    const { outcome, shown } = await asked({
      pieces: ['Good ', 'day'],
      model: 'upstream-m-2026',
      usage,
    });
    expect(shown.join('')).toBe('Good day');
    expect(outcome).toEqual({
      response_id: expect.stringMatching(/^chatcmpl-/),
      model: 'upstream-m-2026',
      content: 'Good day',
      tool_calls: [],
      finish_reason: 'stop',
      tokens: { prompt: 11, completion: 2, total: 13 },
    });
  });

  test('shows a piece before the next one is there', async () => {
    let shown: () => void = () => undefined;
    const first = new Promise<void>((resolve) => (shown = resolve));
    server.use({
      async respond(response) {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(chunkOf({ content: 'one' }));
        await first;
        response.end(chunkOf({ content: ' two' }) + END + DONE);
      },
    });
    const answer = await models.complete('m', request, new AbortController().signal, {
      account_id: 'a',
      onDelta: () => shown(),
    });
    expect(answer.content).toBe('one two');
  });

  test('joins whatever the text was parted into, and parts no character', async () => {
    const text = fc.string({
      unit: fc.constantFrom('a', 'é', '😀', '\0', '\n', '"', '\ud83d', '👩‍👩‍👧'),
    });
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
        async (whole, cuts) => {
          fc.pre(whole !== '');
          const wire = [];
          for (let at = 0; at < whole.length;) {
            const { value: size } = cuts.next();
            wire.push(chunkOf({ content: whole.slice(at, at + size) }));
            at += size;
          }
          const bytes = Buffer.from(wire.join('') + END + DONE);
          const { value: cut } = cuts.next();
          const parts = [bytes.subarray(0, cut * 20), bytes.subarray(cut * 20)];
          const { outcome, shown } = await asked(stream(...parts));
          expect((outcome as ChatAnswer).content).toBe(
            whole.toWellFormed().replaceAll('\0', '\uFFFD'),
          );
          expect(shown.join('')).toBe((outcome as ChatAnswer).content);
          expect(shown.every((piece) => piece.isWellFormed())).toBe(true);
        },
      ),
      { numRuns: 50 },
    );
  });

  test('puts tool calls together, those too whose parts have no index', async () => {
    const called = [
      { id: 'call_7', name: 'f', arguments: '{"a": "😀"}' },
      { id: 'c2', name: 'g', arguments: '' },
    ];
    const expected = called.map(({ id, ...rest }) => ({ id, type: 'function', function: rest }));
    expect((await answerOf({ tool_calls: called })).tool_calls).toEqual(expected);
    const part = (call: object): string => chunkOf({ tool_calls: [call] });
    const without = stream(
      part({ id: 'call_7', function: { name: 'f', arguments: '{"a": "\ud83d' } }),
      part({ function: { arguments: '\ude00"}' } }),
      part({ id: 'c2', function: { name: 'g' } }),
      END + DONE,
    );
    expect((await answerOf(without)).tool_calls).toEqual(expected);
  });

  describe('keeps complete tool calls apart', () => {
    const calls = [
      { name: 'calculator', arguments: '{"expression": "1+1"}' },
      { name: 'calculator', arguments: '{"expression": "2+2"}' },
      { name: 'clock', arguments: '{}' },
    ];
    test.each<[string, object[]]>([
      ['of one index', [0, 1, 2].map((id) => ({ id: `c${id}`, index: 0 }))],
      ['without an index', [0, 1, 2].map((id) => ({ id: `c${id}` }))],
      ['of one index without ids', [0, 1, 2].map(() => ({ id: '', index: 0 }))],
      ['without an index and ids', [{}, {}, {}]],
      ['of one id', [0, 1, 2].map(() => ({ id: 'same' }))],
    ])('%s', async (_, marks) => {
      const chunks = calls.map((call, at) =>
        chunkOf({ tool_calls: [{ ...marks[at], type: 'function', function: call }] }),
      );
      const { tool_calls } = await answerOf(stream(...chunks, END + DONE));
      expect(tool_calls.map((call) => call.function)).toEqual(calls);
      expect(new Set(tool_calls.map(({ id }) => id)).size).toBe(3);
    });
  });

  test.each<[string, object, object]>([
    ['id and index', { id: 'c1', index: 0 }, { id: 'c2', index: 1 }],
    ['id', { id: 'c1' }, { id: 'c2' }],
    ['index', { index: 0 }, { index: 1 }],
  ])('joins interleaved parts by %s, and does not append a repeated name', async (_, a, b) => {
    const part = (mark: object, name: string, args: string): string =>
      chunkOf({ tool_calls: [{ ...mark, function: { name, arguments: args } }] });
    const interleaved = stream(
      part(a, 'f', '{"a":'),
      part(b, 'g', '{"b":'),
      part(a, 'f', '1}'),
      part(b, 'g', '2}'),
      part(a, 'f', ' '),
      END + DONE,
    );
    expect((await answerOf(interleaved)).tool_calls.map((call) => call.function)).toEqual([
      { name: 'f', arguments: '{"a":1} ' },
      { name: 'g', arguments: '{"b":2}' },
    ]);
  });

  test('shows a refusal, and answers it', async () => {
    const { outcome, shown } = await asked({ refusal: 'I would rather not.' });
    expect([(outcome as ChatAnswer).content, shown.join('')]).toEqual([
      'I would rather not.',
      'I would rather not.',
    ]);
  });

  test.each<[string, Step]>([
    ['reports no usage', { text: 'Hi', usage: null }],
    ['says no last word', stream(chunkOf({ content: 'Hi' }), END)],
    [
      'ends its lines with CR LF',
      stream((chunkOf({ content: 'Hi' }) + END + DONE).replaceAll('\n', '\r\n')),
    ],
    [
      'ends its lines with CR',
      stream((chunkOf({ content: 'Hi' }) + END + DONE).replaceAll('\n', '\r')),
    ],
    [
      'sends comments and other fields',
      stream(`: ping\n\nevent: x\nid: 1\n${chunkOf({ content: 'Hi' })}`, END),
    ],
  ])('answers where the provider %s', async (_, step) => {
    expect(await answerOf(step)).toMatchObject({
      content: 'Hi',
      tokens: undefined,
      finish_reason: 'stop',
    });
  });

  test('shows the whole text of a provider that knows no streams', async () => {
    const body = {
      id: 'r',
      choices: [{ finish_reason: 'stop', message: { content: 'all of it' } }],
    };
    const { outcome, shown } = await asked({ status: 200, body });
    expect([(outcome as ChatAnswer).content, shown]).toEqual(['all of it', ['all of it']]);
  });

  test('a usage that is nested as deep as no reader goes is none', async () => {
    const usage = '['.repeat(1_900) + ']'.repeat(1_900);
    const chunk = `data: {"choices":[],"usage":${usage}}\n\n`;
    const answer = await answerOf(stream(chunkOf({ content: 'Hi' }), END, chunk, DONE));
    expect(answer).toMatchObject({ content: 'Hi', tokens: undefined });
  });

  test('an answer that says nothing is one without a text', async () => {
    expect(await asked(stream(END + DONE))).toMatchObject({
      outcome: { content: null, tool_calls: [], finish_reason: 'stop' },
      shown: [],
      sent: 1,
    });
  });

  test('an empty error is none', async () => {
    const answer = await answerOf(stream(chunkOf({ content: 'Hi' }), eventOf({ error: '' }), END));
    expect(answer).toMatchObject({ content: 'Hi', finish_reason: 'stop' });
  });

  test('an answer is there with its last word, though the server goes on', async () => {
    const began = performance.now();
    server.use({
      respond(response) {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(chunkOf({ content: 'Hi' }) + END + DONE);
      },
    });
    const abandoned = server.abandonedSoFar() + 1;
    await models.complete('m', request, new AbortController().signal, {
      account_id: 'a',
      onDelta: () => undefined,
    });
    expect(performance.now() - began).toBeLessThan(10_000);
    await server.abandoned(abandoned);
  });

  test.each<[string, Step]>([
    ['500', { status: 500 }],
    ['a reset before the answer', { fault: 'reset_before_answer' }],
  ])('a provider that fails with %s before anything was shown is asked again', async (_, fault) => {
    const { outcome, shown, sent } = await asked([fault, { text: 'back' }]);
    expect([(outcome as ChatAnswer).content, shown.join(''), sent]).toEqual(['back', 'back', 2]);
  });

  describe('what can not be used is model_error, once, and what was shown stays shown:', () => {
    const some = chunkOf({ content: 'some' });
    test.each<[string, Step, string, RegExp]>([
      ['a stream that is cut off', stream(some), 'some', /broke off in the middle/],
      ['a stream that is empty', stream(''), '', /broke off/],
      [
        'an error in the stream',
        stream(some, eventOf({ error: { code: 'insufficient_quota', message: 'm' } })),
        'some',
        /with an error: the quota is used up\.$/,
      ],
      [
        'an error that is no part of an answer',
        stream(some, eventOf({ object: 'error', message: 'm', code: 500 }), DONE),
        'some',
        /broke off in the middle/,
      ],
      [
        'an error for a finish reason',
        stream(some, chunkOf({}, { finish_reason: 'error' }), DONE),
        'some',
        /broke off its answer with an error\.$/,
      ],
      [
        'what is no chunk',
        stream(some, 'data: <html>\n\n'),
        'some',
        /no part of a chat completion/,
      ],
      ['a line without an end', endless('x'.repeat(65_536)), '', /longer than/],
      ['chunks without an end', endless(chunkOf({}).repeat(1_000)), '', /longer than/],
      [
        'text without an end',
        endless(chunkOf({ content: 'x'.repeat(60_000) })),
        'x'.repeat(LIMITS.model.answerBytes),
        /longer than 2,097,152/,
      ],
      ['a chunk of brackets', stream(`data: ${'['.repeat(100_000)}\n\n`), '', /too many parts/],
      [
        'tool calls without an end',
        stream(
          ...Array.from({ length: 200 }, (_, index) =>
            chunkOf({ tool_calls: [{ index, id: `${index}`, function: { name: 'f' } }] }),
          ),
        ),
        '',
        /too many parts/,
      ],
      [
        'arguments without an end',
        endless(
          chunkOf({
            tool_calls: [
              { index: 0, id: 'c', function: { name: 'f', arguments: 'x'.repeat(60_000) } },
            ],
          }),
        ),
        '',
        /too many parts|too long/,
      ],
    ])('%s', async (_, step, text, words) => {
      const { outcome, shown, sent } = await asked(step);
      expect(outcome).toMatchObject({ code: 'model_error', message: expect.stringMatching(words) });
      expect(text.startsWith(shown.join(''))).toBe(true);
      if (text.length < 10) expect(shown.join('')).toBe(text);
      expect(sent).toBe(1);
    });
  });

  test('a stream that is reset in its middle is model_error, and is not asked for again', async () => {
    const { outcome, shown, sent } = await asked({
      async respond(response) {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        await written(response, chunkOf({ content: 'some' }));
        response.socket?.resetAndDestroy();
      },
    });
    expect(outcome).toMatchObject({ code: 'model_error', retriable: true });
    expect([shown.join('').slice(0, 4), sent]).toEqual([shown.length ? 'some' : '', 1]);
  });

  test('a signal that aborts ends the call with its reason, and lets go of the connection', async () => {
    const abort = new AbortController();
    const reason = new Error('the run is over');
    const abandoned = server.abandonedSoFar() + 1;
    server.use({
      respond(response) {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(chunkOf({ content: 'some' }));
      },
    });
    const call = models.complete('m', request, abort.signal, {
      account_id: 'a',
      onDelta: () => abort.abort(reason),
    });
    expect(await call.catch((error: unknown) => error)).toBe(reason);
    await server.abandoned(abandoned);
  });
}
