import { afterEach, expect, jest, test } from '@jest/globals';
import { describeTools, type ServerTool } from '../../../../infra/mcp/thread/describedTools.ts';
import { functionName, readToolList, type ListedTool } from '../../../../infra/mcp/toolList.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { processOf, serverWith } from '../../../support/fakes/mcpGroups.ts';

afterEach(() => void jest.restoreAllMocks());

const server = serverWith(processOf());
const schema = { type: 'object', properties: { a: { type: 'string' } } };

test.each([
  ['files', 'read', 'files__read'],
  ['files', 'read-all', 'files__read-all'],
  ['files', 'read.all', /^files__read_all_[0-9a-f]{8}$/],
  ['files', 'read/all', /^files__read_all_[0-9a-f]{8}$/],
  ['files', 'x'.repeat(128), /^files__x{48}_[0-9a-f]{8}$/],
])('the function of %s/%.20s is one that models may call', (group, tool, name) => {
  expect(functionName(group, tool)).toMatch(name);
  expect(functionName(group, tool)).toMatch(/^[\w-]{1,64}$/);
});

test('tools with names that are alike have functions of their own', () => {
  const names = ['a.b', 'a/b', 'a:b', 'a_b'].map((tool) => functionName('files', tool));
  expect(new Set(names).size).toBe(4);
});

const told = [{ name: 'a', description: 'one', inputSchema: schema }];
const listOf = async (
  tools: readonly ServerTool[],
  before: readonly ListedTool[] = [],
  flawOf: (schema: string) => string | undefined = () => undefined,
) =>
  readToolList(server, await describeTools(server, [tools]), {
    before,
    schemas: {
      toolFlawOf: async (text) => flawOf(text),
      argumentsProblemOf: async () => undefined,
    },
  });

test('a tool that has not changed is the one that was listed before', async () => {
  const first = await listOf(told);
  const second = await listOf(structuredClone(told), first.tools);
  expect(second.tools[0]).toBe(first.tools[0]);
  const third = await listOf([{ ...told[0]!, description: 'two' }], first.tools);
  expect(third.tools[0]).not.toBe(first.tools[0]);
});

test('a tool whose schema can’t be used is refused', async () => {
  const { tools, refused } = await listOf(told, [], (text) =>
    text === JSON.stringify(schema) ? 'can’t be used' : undefined,
  );
  expect(tools).toEqual([]);
  expect(refused).toEqual(['"a" is not offered: its schema can’t be used']);
});

test('what can’t be named or stored is refused, and descriptions are cut', async () => {
  const { tools, refused } = await listOf([
    { name: 'a,b', inputSchema: schema },
    { name: 'a b', inputSchema: schema },
    { name: 'a', description: `\0${'x'.repeat(5_000)}`, inputSchema: schema },
    { name: 'b', inputSchema: { type: 'object', title: '\uD800' } },
  ]);
  expect(tools.map(({ name, description }) => [name, description.length])).toEqual([['a', 4_096]]);
  expect(tools[0]!.description.startsWith('\uFFFDx')).toBe(true);
  expect(refused).toHaveLength(3);
});

test('tools beyond the bytes of a list are refused', async () => {
  const large = { type: 'object', description: 'x'.repeat(30_000) };
  const many = Array.from({ length: 60 }, (_, n) => ({ name: `t${n}`, inputSchema: large }));
  const { tools, refused } = await listOf(many);
  expect(tools).toHaveLength(34);
  expect(refused).toHaveLength(26);
});

test('schemas have a limited time, which begins once the thread that checks them has started', async () => {
  let now = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  const durations = [4 * LIMITS.mcp.schemasMs, 1, LIMITS.mcp.schemasMs];
  const names = ['first', 'second', 'third', 'late'];
  const { tools, refused } = await listOf(
    names.map((name) => ({ name, inputSchema: schema })),
    [],
    () => void (now += durations.shift()!),
  );
  expect(tools.map(({ name }) => name)).toEqual(['first', 'second', 'third']);
  expect(refused).toEqual(['"late" is not offered: reading the tools takes too long']);
});
