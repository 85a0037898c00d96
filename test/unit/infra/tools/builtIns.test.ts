import { describe, expect, test } from '@jest/globals';
import { createBuiltIns } from '../../../../infra/tools/builtIns.ts';
import { createToolbox, truncate } from '../../../../infra/tools/toolbox.ts';
import { KIB, MIB } from '../../../../shared/lib/units.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { ToolGroup } from '../../../../shared/ports/toolGroup.ts';

const now = Date.UTC(2026, 10, 20, 9, 30, 0, 123);
const toolbox = createToolbox(
  createBuiltIns({ clock: { now: () => now }, readPage: async (url) => `text of ${url}` }),
);
const signal = new AbortController().signal;
const calculate = (expression: string) =>
  toolbox.call(
    'calculator',
    { name: 'calculator', arguments: JSON.stringify({ expression }), account_id: 'a' },
    signal,
  );
const tellTime = (args: string) =>
  toolbox.call('clock', { name: 'clock', arguments: args, account_id: 'a' }, signal);

describe('the calculator', () => {
  test('answers with the value', async () => {
    expect(await calculate('12*34')).toEqual({ result: '408', is_error: false });
    expect(await calculate('1/3')).toEqual({
      result: '1/3, about 0.33333333333333333333',
      is_error: false,
    });
  });

  test.each(['1/0', '0/0', '5 % 0', 'sqrt(-1)', '(-8)^(1/3)', 'log(0)', 'asin(2)', 'exp(10^13)'])(
    'says that %s has no value that it can tell',
    async (expression) => {
      expect(await calculate(expression)).toEqual({
        result: expect.stringMatching(/divides by zero|no real value|too large/),
        is_error: true,
      });
    },
  );

  test.each([
    'a = 1',
    'f(x) = x',
    'x',
    '[1, 2]',
    '"text"',
    '1; 2',
    'true ? 1 : 2',
    '{a: 1}',
    'pi.constructor',
    'eval("1")',
    'import({}, {})',
    'createUnit("foo")',
    'parse("1")',
    '1:9',
    '2 inch',
    'random()',
    'max.constructor("return 1")()',
  ])('refuses %s, and says why', async (expression) => {
    expect(await calculate(expression)).toEqual({
      result: expect.stringMatching(/Allowed are numbers, \+ - \* |needs parentheses/),
      is_error: true,
    });
  });

  test.each([
    '{',
    '[]',
    '{}',
    '{"expression":7}',
    '{"expression":"1","more":1}',
    '',
    `{"expression":"${'1'.repeat(1001)}"}`,
    '{"expression":""}',
  ])('says what is wrong with the arguments %.40s', async (args) => {
    expect(
      await toolbox.call(
        'calculator',
        { name: 'calculator', arguments: args, account_id: 'a' },
        signal,
      ),
    ).toEqual({
      result: expect.stringMatching(/^The arguments of calculator (do not fit|are not valid JSON)/),
      is_error: true,
    });
  });
});

describe('the clock', () => {
  test('tells the time in UTC', async () => {
    expect(await tellTime('{}')).toEqual({ result: '2026-11-20T09:30:00.123Z', is_error: false });
    expect(await tellTime('')).toEqual({ result: '2026-11-20T09:30:00.123Z', is_error: false });
  });

  test('adds the local time of a time zone', async () => {
    const { result } = await tellTime('{"time_zone":"Asia/Tokyo"}');
    expect(result).toMatch(
      /^2026-11-20T09:30:00\.123Z \(Friday.* 20 November 2026.* 18:30:00.*Asia\/Tokyo\)$/,
    );
  });

  test('says so when there is no such time zone', async () => {
    expect(await tellTime('{"time_zone":"Mars/Olympus"}')).toEqual({
      result: expect.stringContaining('"Mars/Olympus" is not a time zone'),
      is_error: true,
    });
  });
});

describe('the toolbox', () => {
  test('lists its tools with the JSON Schema of their arguments', () => {
    expect(toolbox.list().map((tool) => tool.name)).toEqual(['calculator', 'clock', 'web_fetch']);
    expect(toolbox.list()[0]?.parameters).toMatchObject({
      type: 'object',
      required: ['expression'],
    });
    expect(toolbox.findUnsupported('clock')).toBeUndefined();
    expect(toolbox.findUnsupported('clock,toString')).toBe('toString');
  });

  test('offers a model the one function of a tool, as plain JSON', async () => {
    const definitions = await toolbox.definitions('calculator');
    expect(definitions).toMatchObject([{ type: 'function', function: { name: 'calculator' } }]);
    expect(JSON.parse(JSON.stringify(definitions))).toEqual(definitions);
  });

  test('has no definitions of a tool that is not configured', async () => {
    await expect(toolbox.definitions('web_search')).rejects.toMatchObject({
      code: 'tool_not_supported',
    });
  });

  const offer = (count: number, description: string): Promise<object[]> => {
    const tools = Array.from({ length: count }, (_, index) => ({
      name: `tool${index}`,
      function: `tool${index}`,
      description,
      parameters: {},
    }));
    const group = {
      name: 'mcp:many',
      tools: () => tools,
      known: async () => tools,
    } as unknown as ToolGroup;
    return createToolbox([], [group]).definitions('mcp:many');
  };

  test('offers a model no more functions than it may have, and no longer definitions', async () => {
    const { functions, definitionBytes } = LIMITS.tool;
    expect(await offer(functions, 'short')).toHaveLength(functions);
    expect(await offer(1, 'x'.repeat(definitionBytes - KIB))).toHaveLength(1);
    const refusal = { code: 'tool_not_supported' };
    await expect(offer(functions + 1, 'short')).rejects.toMatchObject(refusal);
    await expect(offer(2, 'x'.repeat(definitionBytes / 2))).rejects.toMatchObject(refusal);
  });

  test('tells the model when it calls a function that it was not offered', async () => {
    expect(
      await toolbox.call('calculator', { name: 'clock', arguments: '{}', account_id: 'a' }, signal),
    ).toEqual({
      result: 'There is no function "clock".',
      is_error: true,
    });
  });

  test('ends with the reason of a signal that has aborted', async () => {
    const reason = new Error('the run is over');
    await expect(
      toolbox.call(
        'clock',
        { name: 'clock', arguments: '{}', account_id: 'a' },
        AbortSignal.abort(reason),
      ),
    ).rejects.toBe(reason);
  });
});

describe('a long result', () => {
  test('is cut at a character, and says so', () => {
    // 13 bytes for the mark leave 52: 17 characters of three bytes, and one byte over.
    expect(truncate('€'.repeat(30), 65)).toBe(`${'€'.repeat(17)}… (cut off)`);
    expect(truncate('€'.repeat(21), 63)).toBe('€'.repeat(21));
  });

  test('can be stored', () => {
    expect(truncate('a\0\uD800b', 64)).toBe('a\uFFFD\uFFFDb');
  });

  test('are cut before they are changed', () => {
    const text = '\0'.repeat(16 * MIB);
    const before = process.cpuUsage();
    expect(truncate(text, 64)).toBe(`${'\uFFFD'.repeat(17)}… (cut off)`);
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(100);
  });

  test('are cut between characters of two halves, too', () => {
    expect(truncate('😀'.repeat(40), 64)).toBe(`${'😀'.repeat(12)}… (cut off)`);
    expect(truncate(`a${'😀'.repeat(40)}`, 64)).toBe(`a${'😀'.repeat(12)}… (cut off)`);
  });
});
