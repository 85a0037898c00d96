import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { describeTools, summaryOf } from '../../../../../infra/mcp/thread/describedTools.ts';
import { processOf, serverWith } from '../../../../support/fakes/mcpGroups.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Schemas near the limit of their length, by what they hold besides. */
const repeat = (count: number, item: (index: number) => unknown) =>
  Array.from({ length: count }, (_, index) => item(index));
const SCHEMAS: [what: string, schemaOf: (tool: number) => object][] = [
  ['empty objects', () => repeat(10_000, () => ({}))],
  ['nested arrays', () => repeat(1_400, () => [[[[[[[[[[]]]]]]]]]])],
  ['objects with an index', () => repeat(3_000, () => ({ 999: 1 }))],
  [
    'objects with names of their own',
    (tool) => repeat(2_500, (index) => ({ [`${tool.toString(36)}_${index.toString(36)}`]: 1 })),
  ],
  [
    'many members',
    (tool) =>
      Object.fromEntries(repeat(2_500, (index) => [`${tool}_${index}`, 1]) as [string, number][]),
  ],
  ['short texts', (tool) => repeat(3_000, (index) => `${tool}_${index}`)],
  ['long texts', () => repeat(30, (index) => `${index}中`.repeat(200))],
];

test.each(SCHEMAS)('the memory of tools is at most as estimated: %s', async (_what, schemaOf) => {
  const tools = repeat(32, (index) => ({
    name: `t${index}`,
    inputSchema: { enum: schemaOf(index) },
  })) as { name: string; inputSchema: object }[];
  const described = await describeTools(serverWith(processOf()), [tools]);
  expect(described.refused).toEqual([]);
  const { bytes } = summaryOf(described);
  tools.length = 0;
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const kept = described.tools.map(({ schema }) => [
    Buffer.from(schema).toString(),
    JSON.parse(schema) as object,
  ]);
  collectGarbage();
  const taken = process.memoryUsage().heapUsed - before;
  expect(kept).toHaveLength(32);
  expect(taken).toBeLessThan(bytes);
  expect(bytes).toBeLessThan(6 * taken);
});

test('lists that differ have summaries that differ', async () => {
  const digestOf = async (name: string, description: string) => {
    const tool = { name, description, inputSchema: { type: 'object' } };
    return summaryOf(await describeTools(serverWith(processOf()), [[tool]])).digest;
  };
  const digests = [await digestOf('a', 'b'), await digestOf('a', 'c'), await digestOf('a,', 'b')];
  expect(new Set(digests).size).toBe(3);
  expect(await digestOf('a', 'b')).toBe(digests[0]);
});
