import { expect, test } from '@jest/globals';
import { describeTools, type ServerTool } from '../../../../infra/mcp/thread/describedTools.ts';
import { functionName, readToolList, type ListedTool } from '../../../../infra/mcp/toolList.ts';
import { processOf, serverWith } from '../../../support/fakes/mcpGroups.ts';

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
  flaws: Record<string, string> = {},
) =>
  readToolList(server, await describeTools(server, [tools]), {
    before,
    schemas: {
      toolFlawOf: async (text) => flaws[text],
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
  const { tools, refused } = await listOf(told, [], { [JSON.stringify(schema)]: 'can’t be used' });
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
