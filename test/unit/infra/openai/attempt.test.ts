import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Agent } from 'undici';
import { sendAttempt, type ProviderReply } from '../../../../infra/openai/attempt.ts';
import { createMemoryLedger, type MemoryLedger } from '../../../../shared/lib/memory/ledger.ts';
import type { ModelCaller } from '../../../../shared/ports/chatModel.ts';
import { memoryFor } from '../../../support/builders/memory.ts';
import {
  startScriptedModel,
  type ScriptedModel,
  type Step,
} from '../../../support/fakes/scriptedModel.ts';

test('an attempt that reaches its time limit while it waits for a connection is never sent', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const server = await startScriptedModel(() => released.then(() => ({ text: 'Hi' })));
  const agent = new Agent({ connections: 1 });
  const { origin } = new URL(server.baseUrl);
  const send = (content: string, timeoutMs: number) =>
    sendAttempt(
      { agent, ledger: createMemoryLedger() },
      {
        origin,
        path: '/v1/chat/completions',
        method: 'POST',
        headers: ['content-type', 'application/json'],
        body: Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] })),
      },
      { caller: { account_id: 'a' }, timeoutMs },
    );
  try {
    const first = send('first', 60_000);
    await server.received(1);
    expect((await send('waiting', 1)).body).toMatchObject({ code: 'model_timeout' });
    release();
    await first;
    await send('last', 60_000);
    expect(server.requests.map(({ messages }) => messages[0]?.content)).toEqual(['first', 'last']);
  } finally {
    await agent.destroy();
    await server.close();
  }
});

describe('an answer', () => {
  let server: ScriptedModel;
  let agent: Agent;
  let ledger: MemoryLedger;
  let held: (() => void)[];
  beforeEach(async () => {
    server = await startScriptedModel({ text: 'Hi' });
    agent = new Agent();
    ledger = createMemoryLedger();
    held = [];
  });
  afterEach(async () => {
    await agent.destroy();
    await server.close();
  });
  const used = (): number => ledger.usage('modelAnswers').used;

  const HOLDING = { account_id: 'a', hold: (release: () => void) => void held.push(release) };
  function send(step: Step, caller: ModelCaller = HOLDING): Promise<ProviderReply> {
    server.use(step);
    const { origin } = new URL(server.baseUrl);
    const body = Buffer.from(
      JSON.stringify({ messages: [], stream: caller.onDelta !== undefined }),
    );
    return sendAttempt(
      { agent, ledger },
      { origin, path: '/v1/chat/completions', method: 'POST', headers: [], body },
      { caller },
    );
  }

  test.each(['', 'none', 'Identity', 'identity, identity'])(
    'is read although its content coding is %j, which is none',
    async (coding) => {
      const { body } = await send({
        respond(response) {
          response.writeHead(200, { 'content-encoding': coding });
          response.end('{}');
        },
      });
      expect(body).toBe('{}');
    },
  );

  test('does not begin with informational responses: a connection that ends after them has failed', async () => {
    const failed = send({
      respond: (response) =>
        response.writeEarlyHints({ link: '</a>' }, () => response.socket?.end()),
    });
    await expect(failed).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' });
  });

  test.each<[string, Step, Partial<ModelCaller>, number]>([
    ['in one piece', { text: 'word '.repeat(100) }, {}, 1],
    ['in many pieces', { text: 'word '.repeat(100_000) }, {}, 1],
    ['of wide characters', { text: 'ж'.repeat(1_000) }, {}, 2],
    ['in a stream', { text: 'word '.repeat(1_000) }, { onDelta: () => undefined }, 1],
  ])('%s is kept until the caller releases it', async (_, step, more, bytesPerCharacter) => {
    const { body } = await send(step, { ...HOLDING, ...more });
    expect(used()).toBe((body as string).length * bytesPerCharacter);
    expect(held).toHaveLength(1);
    held[0]!();
    expect(ledger.usage('modelAnswers')).toMatchObject({ used: 0, reservations: 0 });
  });

  test('is released at once for an error, and for a caller that holds none', async () => {
    await send({ status: 400, body: { error: { message: 'no' } } });
    await send({ text: 'word '.repeat(100_000) }, { account_id: 'a' });
    expect([held, used()]).toEqual([[], 0]);
  });

  test('takes the memory of its buffer where there is no more', async () => {
    ledger = memoryFor('modelAnswers', 18_000);
    const message = { role: 'assistant', content: `${'x'.repeat(6_000)}é` };
    const text = JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] });
    const sendPieces = async (response: ServerResponse): Promise<void> => {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += 500) {
        response.write(bytes.subarray(at, at + 500));
        await nextTurn();
      }
      response.end();
    };
    expect(await send({ respond: (response) => void sendPieces(response) })).toMatchObject({
      status: 200,
      body: text,
    });
    expect(used()).toBeLessThan(9_000);
    held[0]!();
    expect(used()).toBe(0);
  });

  test('counts against the share of the account while it is held', async () => {
    ledger = memoryFor('modelAnswers', 2_000);
    const step = { text: 'x'.repeat(400) };
    expect((await send(step)).body).toContain('xxx');
    expect((await send(step)).body).toMatchObject({ code: 'model_overloaded' });
    for (const release of held) release();
    expect((await send(step)).body).toContain('xxx');
  });
});
