import { MessageChannel } from 'node:worker_threads';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import type { ThreadRequest } from '../../../../infra/mcp/messages.ts';
import { createMcpThread, type McpThread } from '../../../../infra/mcp/mcpThread.ts';
import { supervise } from '../../../../infra/mcp/supervise.ts';
import { describeTools, summaryOf } from '../../../../infra/mcp/thread/describedTools.ts';
import { createLogger } from '../../../../shared/lib/logger.ts';
import type { MemoryLedger } from '../../../../shared/lib/memory/ledger.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { memoryFor } from '../../../support/builders/memory.ts';
import { processOf, serverWith, until } from '../../../support/fakes/mcpGroups.ts';

const server = serverWith(processOf());
const describedOf = (names: readonly string[]) =>
  describeTools(server, [names.map((name) => ({ name, inputSchema: { type: 'object' } }))]);
const bytesOf = async (...names: string[]) => summaryOf(await describedOf(names)).bytes;

let close: () => Promise<void>;
const pauseFor = (ms: number) => jest.replaceProperty(LIMITS.mcp, 'listPauseMs', ms as never);
beforeEach(() => void pauseFor(0));
afterEach(async () => {
  jest.restoreAllMocks();
  await close();
});

/** A supervised server with these tools. Its calls of `list` lead to the next listing. */
function start(memory: MemoryLedger, names: string[]) {
  let listings = 0;
  let loads = 0;
  const thread: McpThread = {
    ...createMcpThread(),
    connect() {
      const { port1, port2 } = new MessageChannel();
      const replyTo = async (request: ThreadRequest): Promise<object | undefined> => {
        const described = await describedOf(names);
        if (request.op === 'list') return summaryOf(described);
        if (request.op !== 'endList') return undefined;
        listings += 1;
        if (request.load) loads += 1;
        return request.load ? described : undefined;
      };
      port2.on('message', (request: ThreadRequest) => {
        if (request.op === 'close') return port2.close();
        if (!('id' in request)) return undefined;
        const { id } = request;
        return void replyTo(request).then((reply) => port2.postMessage({ id, reply }));
      });
      return {
        port: port1,
        ended: new Promise(() => undefined),
        terminate: () => undefined,
        release: () => undefined,
      };
    },
  };
  const logger = createLogger('silent');
  const warnings: unknown[] = [];
  logger.warn = (line: unknown) => warnings.push(line);
  /** The memory in use whenever a schema of a new list is checked. */
  const reading: number[] = [];
  const schemas = {
    toolFlawOf: async () => void reading.push(memory.usage('toolLists').used),
    argumentsProblemOf: async () => undefined,
  };
  const resources = { logger, version: '1', thread, schemas, memory };
  const supervised = supervise(server, resources);
  ({ close } = supervised);
  async function list(...next: string[]): Promise<void> {
    names.splice(0, names.length, ...next);
    const before = listings;
    supervised.checkSoon();
    await until(() => listings > before);
    await new Promise(setImmediate);
  }
  const toolNames = () => supervised.tools()?.map(({ name }) => name);
  return {
    supervised,
    list,
    toolNames,
    warnings,
    reading,
    loads: () => loads,
    listings: () => listings,
  };
}

const used = (memory: MemoryLedger) => memory.usage('toolLists').used;

test('memory for the tools is reserved before they are loaded, and released with them', async () => {
  const memory = memoryFor('toolLists', 1_000_000);
  const { supervised, list, reading } = start(memory, ['a', 'b']);
  await supervised.firstListed;
  const [two, one] = [await bytesOf('a', 'b'), await bytesOf('c')];
  expect([reading, used(memory)]).toEqual([[two, two], two]);
  await list('c');
  expect([reading.at(-1), used(memory)]).toEqual([two + one, one]);
  await close();
  expect(memory.usage('toolLists')).toMatchObject({ used: 0, reservations: 0 });
});

test('a list that has not changed is not loaded again', async () => {
  const { supervised, list, loads } = start(memoryFor('toolLists', 1_000_000), ['a']);
  await supervised.firstListed;
  await list('a');
  expect(loads()).toBe(1);
});

test('a list without memory is not loaded: the earlier tools stay, the log and health name the server, and it is tried again', async () => {
  const memory = memoryFor('toolLists', 4 * (await bytesOf('a', 'b')));
  const { supervised, list, toolNames, warnings, loads } = start(memory, ['a']);
  await supervised.firstListed;
  const others = memory.forceReserve({ account_id: 'other', purpose: 'toolLists', bytes: 3_000 });
  const bytes = await bytesOf('a', 'b');
  await list('a', 'b');
  await list('a', 'b');
  expect([loads(), toolNames(), used(memory)]).toEqual([1, ['a'], 3_000 + (await bytesOf('a'))]);
  expect(warnings).toEqual([{ server: 'files', bytes, tools: 1 }]);
  expect(supervised.health()).toEqual({
    state: 'up',
    problems: ['there is no memory for its list of tools, which is loaded later'],
  });
  others.release();
  await list('a', 'b');
  expect([toolNames(), used(memory), supervised.health()]).toEqual([
    ['a', 'b'],
    bytes,
    { state: 'up' },
  ]);
});

test('a list without memory beside the earlier one replaces it, and exceeds the limit by one list at most', async () => {
  const bytes = await bytesOf('a', 'b');
  const memory = memoryFor('toolLists', 4 * bytes);
  const { supervised, list, toolNames, reading } = start(memory, ['a', 'b']);
  await supervised.firstListed;
  memory.forceReserve({ account_id: 'other', purpose: 'toolLists', bytes: 3 * bytes });
  await list('c', 'd');
  expect([toolNames(), reading.at(-1), used(memory)]).toEqual([['c', 'd'], 5 * bytes, 4 * bytes]);
  const another = memory.forceReserve({ account_id: 'other', purpose: 'toolLists', bytes: 1 });
  await list('e', 'f');
  expect([toolNames(), used(memory)]).toEqual([['c', 'd'], 4 * bytes + 1]);
  another.release();
  await list('e');
  expect([toolNames(), used(memory)]).toEqual([['e'], 3 * bytes + (await bytesOf('e'))]);
});

test('a first list that takes more than one server may is not loaded', async () => {
  const memory = memoryFor('toolLists', 4 * (await bytesOf('a')));
  const { supervised, list, toolNames } = start(memory, ['a', 'b']);
  await until(() => supervised.health().state === 'up');
  expect([toolNames(), used(memory), memory.usage('toolLists').rejections]).toEqual([
    undefined,
    0,
    1,
  ]);
  await list('a');
  expect(toolNames()).toEqual(['a']);
});

test('calls that fail again and again do not end the shortest pause between two listings', async () => {
  pauseFor(1_000);
  const { supervised, listings } = start(memoryFor('toolLists', 1_000_000), ['a']);
  await supervised.firstListed;
  const listedAt = performance.now();
  await until(() => {
    supervised.checkSoon();
    return listings() > 1;
  });
  expect(performance.now() - listedAt).toBeGreaterThan(900);
});
