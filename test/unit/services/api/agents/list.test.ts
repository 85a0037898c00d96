import { once } from 'node:events';
import { get, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import Koa from 'koa';
import { sendAgentList } from '../../../../../services/api/agents/list.ts';
import { agentListCache } from '../../../../../services/api/agents/listCache.ts';
import {
  createResponseMemory,
  type ResponseMemoryPool,
} from '../../../../../services/api/http/responses/responseMemory.ts';
import type { RouteContext } from '../../../../../services/api/context.ts';
import { compressResponses } from '../../../../../services/api/http/middleware/compressed.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../../../shared/lib/logger.ts';
import type { ReadModels } from '../../../../../shared/ports/readModels.ts';
import type { AgentRow } from '../../../../../shared/readModels/tables.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';

const MIB = 1_048_576;
const ROOM = 64 * MIB;
let server: Server;
let responseMemory: ResponseMemoryPool;
let asked: number;
let warnings: unknown[];

/** The read models of an account with agents without end; those after the `failing`th page are away. */
function endless(failing = Infinity): ReadModels {
  return {
    agentListVersion: async () => 'v',
    listAgents: async (_account: string, { after = '0' }: { after?: string }) => {
      asked += 1;
      if (asked > failing) throw storeUnavailableError('The read models are away.');
      const agent_id = String(Number(after) + 1);
      return { rows: [{ agent_id, instruction: 'x'.repeat(MIB) } as AgentRow], more: true };
    },
  } as unknown as ReadModels;
}

async function serve(readModels: ReadModels): Promise<void> {
  const logger = { warn: (fields: unknown) => warnings.push(fields) } as unknown as Logger;
  const app = new Koa();
  app.silent = true;
  app.use(compressResponses(responseMemory));
  app.use((ctx) =>
    sendAgentList({ readModels, responseMemory, logger } as unknown as RouteContext, 'a', {}, ctx),
  );
  server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
}

beforeEach(() => {
  responseMemory = createResponseMemory(memoryFor('answers', ROOM));
  [asked, warnings] = [0, []];
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function ask(encoding: string): Promise<IncomingMessage> {
  const { port } = server.address() as AddressInfo;
  const request = get({ port, headers: { 'accept-encoding': encoding } });
  request.on('error', () => undefined);
  return ((await once(request, 'response')) as [IncomingMessage])[0];
}

/** Resolves once nothing is held any more; a test that waits in vain fails by its time limit. */
async function untilNothingIsHeld(): Promise<void> {
  for (;;) {
    const held = responseMemory.tryAcquire('a', ROOM / 2);
    held?.release();
    if (held) return;
    await setTimeout(10);
  }
}

test.each(['identity', 'gzip', 'br'])(
  'a list that breaks off is cut, never ended, and said once in the log: %s',
  async (encoding) => {
    await serve(endless(9));
    const answer = (await ask(encoding)).resume();
    const [error] = (await once(answer, 'error')) as [Error & { code?: string }];
    expect([error.code, answer.complete]).toEqual(['ECONNRESET', false]);
    expect(warnings).toEqual([
      expect.objectContaining({ err: expect.objectContaining({ code: 'store_unavailable' }) }),
    ]);
    await untilNothingIsHeld();
  },
);

test.each(['identity', 'gzip', 'br'])(
  'a client that leaves frees what it held, and nothing more is read for it: %s',
  async (encoding) => {
    await serve(endless());
    const answer = await ask(encoding);
    await once(answer, 'data');
    answer.destroy();
    await untilNothingIsHeld();
    const before = asked;
    await setTimeout(200);
    expect(asked).toBeLessThanOrEqual(before + 1);
    expect(warnings).toEqual([]);
  },
);

test('a client that does not read has no more read for it than it takes', async () => {
  await serve(endless());
  (await ask('identity')).pause();
  let before = -1;
  while (asked !== before) {
    before = asked;
    await setTimeout(500);
  }
  expect(asked).toBeLessThan(40);
});

test('the cache counts its keys, and keeps nothing that is large', async () => {
  await serve(endless());
  const cache = agentListCache(endless());
  const askedFor = (after: string) => ({ accountId: 'a', limit: 1, after, pretty: false });
  const answer = { version: 'v', nextCursor: undefined };
  cache.store(askedFor('large'), { ...answer, body: Buffer.alloc(3 * MIB) });
  expect(cache.find(askedFor('large'), 'v')).toBeUndefined();
  const body = Buffer.alloc(10);
  cache.store(askedFor('first'), { ...answer, body });
  expect(cache.find(askedFor('first'), 'v')?.body).toBe(body);
  expect(cache.find(askedFor('first'), 'w')).toBeUndefined();
  expect(cache.find({ ...askedFor('first'), pretty: true }, 'v')).toBeUndefined();
  for (let key = 0; key < 16_000; key += 1)
    cache.store(askedFor(`${'k'.repeat(250)}${key}`), { ...answer, body });
  expect(cache.find(askedFor('first'), 'v')).toBeUndefined();
});
