import { EventEmitter } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import type { Context } from 'koa';
import { catalogueFeature } from '../../../../../services/api/catalogue/routes.ts';
import type { RouteContext } from '../../../../../services/api/context.ts';
import { createResponseMemory } from '../../../../../services/api/http/responses/responseMemory.ts';
import { MIB } from '../../../../../shared/lib/units.ts';
import type { ToolInfo } from '../../../../../shared/ports/toolbox.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';
import { isFreed } from '../../../../support/jest/garbage.ts';

const route = catalogueFeature.routes.find(({ operationId }) => operationId === 'listTools')!;

/** A list of tools with a megabyte of descriptions. */
const listOf = (version: string): ToolInfo[] =>
  Array.from({ length: 128 }, (_, index) => ({
    name: `mcp:files/${index}`,
    description: version.repeat(8_192),
    parameters: {},
  }));

async function listTools(list: () => readonly ToolInfo[], query: object = {}): Promise<Readable> {
  const api = {
    catalogue: {
      toolbox: { list, find: (name: string) => list().find((tool) => tool.name === name) },
    },
    responseMemory: createResponseMemory(memoryFor('answers', 16 * MIB), 1_000),
    logger: {},
  } as unknown as RouteContext;
  const res = Object.assign(new EventEmitter(), { closed: false });
  const ctx = { res, query: {}, set: () => undefined, state: {} } as unknown as Context;
  const request = { actor: { account_id: 'a' }, query, params: {}, body: {} };
  await route.handle(api, request as never, ctx);
  return ctx.body as Readable;
}

const namesIn = (body: string): string[] =>
  (JSON.parse(body) as { data: ToolInfo[] }).data.map(({ name }) => name);

test('a slow client keeps no list of tools in memory that was replaced', async () => {
  let tools = listOf('a');
  const old = new WeakRef(tools[64]!);
  const body = await listTools(() => tools);
  await new Promise((resolve) => body.once('readable', resolve));
  tools = listOf('b');
  expect(await isFreed(old)).toBe(true);
  const received = await text(body);
  expect(namesIn(received)).toEqual(tools.map(({ name }) => name));
  expect(received).toMatch(/"a{8192}"[^]*"b{8192}"/);
});

test.each([
  [{ limit: 6 }, 0, 6],
  [{ limit: 8, after: 'mcp:files/9' }, 10, 18],
  [{ after: 'mcp:files/126' }, 127, 128],
  [{ after: 'mcp:files/127' }, 128, 128],
])('sends the page %j', async (query, from, to) => {
  const tools = listOf('a');
  const body = await listTools(() => tools, query);
  expect(namesIn(await text(body))).toEqual(tools.slice(from, to).map(({ name }) => name));
});

test('a tool that its server has removed meanwhile is left out of the page', async () => {
  let tools = listOf('a');
  const body = await listTools(() => tools, { limit: 100 });
  await new Promise((resolve) => body.once('readable', resolve));
  tools = tools.filter((_, index) => index % 50 !== 49);
  const received = namesIn(await text(body));
  expect([received.length, received.includes('mcp:files/99')]).toEqual([98, false]);
});
