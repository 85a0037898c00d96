import { expect, test } from '@jest/globals';
import { Agent } from 'undici';
import { sendAttempt } from '../../../../infra/openai/attempt.ts';
import { createMemoryLedger } from '../../../../shared/lib/memory/ledger.ts';
import { startScriptedModel } from '../../../support/fakes/scriptedModel.ts';

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
