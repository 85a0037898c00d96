import { afterEach, expect, jest, test } from '@jest/globals';
import { createBuiltIns } from '../../../../infra/tools/builtIns.ts';
import { createToolbox } from '../../../../infra/tools/toolbox.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { ToolGroup } from '../../../../shared/ports/toolGroup.ts';

const { argumentsValues, builtInArgumentsChars } = LIMITS.tool;

const listed = { name: 'act', function: 'files__act', description: '', parameters: {} };
const received: unknown[] = [];
const group: ToolGroup = {
  name: 'mcp:files',
  tools: () => [listed],
  known: async () => [listed],
  async call(_tool, args) {
    received.push(args);
    return { result: 'done', is_error: false };
  },
  health: () => ({ name: 'files', state: 'up', tools: 1 }),
};
const builtIns = createBuiltIns({ clock: { now: Date.now }, readPage: async () => '' });
const toolbox = createToolbox(builtIns, [group]);
const call = (name: string, args: string) =>
  toolbox.call(
    'calculator,mcp:files',
    { name, arguments: args, account_id: 'a' },
    new AbortController().signal,
  );

/** An object with so many unknown members. */
const members = (count: number): string =>
  `{${Array.from({ length: count }, (_, index) => `"${index}":1`).join()}}`;

afterEach(() => {
  jest.restoreAllMocks();
  received.length = 0;
});

test.each([
  ['calculator', `{"expression":"${'1'.repeat(builtInArgumentsChars)}"}`, /are longer than 16384/],
  ['files__act', members(argumentsValues + 1), /have more than 5000 values/],
])('arguments of %s that would take long are refused before they are parsed', async (...row) => {
  const [name, args, problem] = row;
  const parse = jest.spyOn(JSON, 'parse');
  const result = await call(name, args);
  expect(parse).not.toHaveBeenCalled();
  expect(result).toEqual({ result: expect.stringMatching(problem), is_error: true });
  expect(received).toEqual([]);
});

test('the model is told a few of the problems of arguments', async () => {
  const { result } = await call('calculator', members(1_000));
  expect(result.match(/must NOT have additional properties/g)).toHaveLength(
    LIMITS.tool.problems - 1,
  );
});

test('a group receives arguments as the text of the model', async () => {
  for (const args of ['{"a": 1}', members(argumentsValues - 10), ' '])
    await call('files__act', args);
  expect(received).toEqual(['{"a": 1}', members(argumentsValues - 10), '{}']);
});

test('a group does not receive arguments that are not JSON', async () => {
  expect(await call('files__act', '{"a":')).toEqual({
    result: 'The arguments of files__act are not valid JSON: {"a":',
    is_error: true,
  });
  expect(received).toEqual([]);
});
