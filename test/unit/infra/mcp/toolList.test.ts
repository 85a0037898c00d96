import { expect, test } from '@jest/globals';
import { functionName, readToolList } from '../../../../infra/mcp/toolList.ts';
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

test('a tool that has not changed is the one that was listed before', async () => {
  const told = [{ name: 'a', description: 'one', inputSchema: schema }];
  const first = await readToolList(server, told, []);
  const second = await readToolList(server, structuredClone(told), first.tools);
  expect(second.tools[0]).toBe(first.tools[0]);
  const third = await readToolList(server, [{ ...told[0]!, description: 'two' }], first.tools);
  expect(third.tools[0]).not.toBe(first.tools[0]);
});

test('what can’t be named or stored is refused, and descriptions are cut', async () => {
  const { tools, refused } = await readToolList(
    server,
    [
      { name: 'a,b', inputSchema: schema },
      { name: 'a b', inputSchema: schema },
      { name: 'a', description: `\0${'x'.repeat(5_000)}`, inputSchema: schema },
      { name: 'b', inputSchema: { type: 'object', title: '\uD800' } },
    ],
    [],
  );
  expect(tools.map(({ name, description }) => [name, description.length])).toEqual([['a', 4_096]]);
  expect(tools[0]!.description.startsWith('\uFFFDx')).toBe(true);
  expect(refused).toHaveLength(3);
});
