import { expect, test } from '@jest/globals';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startServerProcess } from '../../../../support/processes/serverProcess.ts';
import { temporaryFolder } from '../../../../support/stores/sqlite/sqliteEventStore.ts';

/** Writes the limits of each thread but the first one, and the heap that it has, in MB. */
const REPORT = `
  import { isMainThread, resourceLimits, threadName } from 'node:worker_threads';
  import { getHeapStatistics } from 'node:v8';
  const { maxOldGenerationSizeMb: old, maxYoungGenerationSizeMb: young } = resourceLimits;
  const heap = getHeapStatistics().heap_size_limit / 2 ** 20;
  if (!isMainThread) process._rawDebug('THREAD ' + JSON.stringify({ threadName, old, young, heap }));
`;
const MCP_SERVER = {
  command: process.execPath,
  args: ['test/support/servers/hostileMcpServer.mjs', 'many'],
};
/** V8 rounds the size of the young generation up. */
const ROUNDING_MB = 8;

interface ThreadHeap {
  threadName: string;
  old: number;
  young: number;
  heap: number;
}

test('threads have their own heap limits in a process that was started with a limit', async () => {
  const folder = await temporaryFolder();
  const tools = join(folder, 'tools.json');
  await writeFile(tools, JSON.stringify({ mcp_servers: { many: MCP_SERVER } }));
  const preload = `data:text/javascript,${encodeURIComponent(REPORT)}`;
  const server = startServerProcess({
    DATA_DIR: join(folder, 'data'),
    TOOLS_FILE: tools,
    NODE_OPTIONS: `--max-old-space-size=1000 --max-semi-space-size=64 --import ${preload}`,
  });
  await server.ready;
  server.kill('SIGTERM');
  await server.exited;

  const threads = [...server.errors().matchAll(/^THREAD (.*)$/gm)].map(
    ([, json]) => JSON.parse(json!) as ThreadHeap,
  );
  expect(threads.map(({ threadName }) => threadName)).toEqual(
    expect.arrayContaining(['event-store-writer', 'mcp', 'projector']),
  );
  for (const { threadName, old, young, heap } of threads)
    expect({ threadName, fits: heap <= old + young + ROUNDING_MB }).toEqual({
      threadName,
      fits: true,
    });
});
