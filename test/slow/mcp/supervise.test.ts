import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { afterEach, expect, test } from '@jest/globals';
import type { ThreadRequest } from '../../../infra/mcp/messages.ts';
import { createMcpThread, type McpThread } from '../../../infra/mcp/mcpThread.ts';
import { supervise } from '../../../infra/mcp/supervise.ts';
import { createMemoryLedger } from '../../../shared/lib/memory/ledger.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import { processOf, serverWith, until } from '../../support/fakes/mcpGroups.ts';

/** A thread with a server that lists no tools. `meanwhile` is called before it answers. */
function createThread(meanwhile: (list: number, port: MessagePort) => void) {
  let lists = 0;
  const thread: McpThread = {
    ...createMcpThread(),
    connect() {
      const { port1, port2 } = new MessageChannel();
      port2.on('message', (request: ThreadRequest) => {
        if (request.op === 'close') return port2.close();
        if (request.op === 'list') meanwhile((lists += 1), port2);
        if ('id' in request)
          port2.postMessage({
            id: request.id,
            reply: { digest: '', bytes: 0, tools: [], refused: [] },
          });
      });
      return {
        port: port1,
        ended: new Promise(() => undefined),
        terminate: () => undefined,
        release: () => undefined,
      };
    },
  };
  return { thread, lists: () => lists };
}

const schemas = {
  toolFlawOf: async () => undefined,
  argumentsProblemOf: async () => undefined,
};
let supervised: ReturnType<typeof supervise>;
afterEach(() => supervised.close());

test.each([
  ['a change', (port: MessagePort) => port.postMessage({ event: 'changed' })],
  ['a wish to check the connection', () => supervised.checkSoon()],
])('%s during a listing leads to another one', async (_what, notify) => {
  const { thread, lists } = createThread((list, port) => {
    if (list === 1) notify(port);
  });
  const memory = createMemoryLedger();
  const resources = { logger: createLogger('silent'), version: '1', thread, schemas, memory };
  supervised = supervise(serverWith(processOf()), resources);
  await until(() => lists() > 1);
  expect(lists()).toBe(2);
});
