import { MessageChannel } from 'node:worker_threads';
import { expect, test } from '@jest/globals';
import { connectMcp } from '../../../../infra/mcp/connection.ts';
import type { ThreadReport, ThreadRequest } from '../../../../infra/mcp/messages.ts';
import { createMcpThread, type McpThread } from '../../../../infra/mcp/mcpThread.ts';
import { processOf, serverWith } from '../../../support/fakes/mcpGroups.ts';

const { signal } = new AbortController();

test.each(['forgotten', 'lost'] as const)(
  'a call that meets the end of its connection is %s like the connection',
  async (kind) => {
    const { port1: port, port2 } = new MessageChannel();
    const report = (what: ThreadReport): void => port2.postMessage(what);
    port2.on('message', (request: ThreadRequest) => {
      if (request.op === 'open') report({ id: request.id, reply: undefined });
      if (request.op === 'call')
        report({ event: 'closed', kind, reason: 'over', discardedLogs: 0 });
      if (request.op === 'close') port2.close();
    });
    const thread: McpThread = {
      ...createMcpThread(),
      connect: () => ({
        port,
        ended: new Promise(() => undefined),
        terminate: () => undefined,
        release: () => undefined,
      }),
    };
    const connection = await connectMcp(serverWith(processOf()), { version: '1', thread, signal });
    await expect(connection.callTool('act', '{}', signal)).rejects.toMatchObject({ kind });
    await connection.close();
  },
);
