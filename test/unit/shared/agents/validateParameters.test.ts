import { expect, test } from '@jest/globals';
import {
  requireUsableFormat,
  toRecordedFormat,
} from '../../../../shared/agents/validateParameters.ts';
import type { SchemaChecker } from '../../../../shared/ports/schemaChecker.ts';

const recordedWith = (schema: Record<string, unknown>) =>
  toRecordedFormat({ type: 'json_schema', json_schema: { name: 'n', schema } });

const path = 'response_format/json_schema/schema';

test('a schema is recorded as its text', () => {
  expect(recordedWith({ type: 'object' })).toEqual({
    type: 'json_schema',
    json_schema: { name: 'n', schema: '{"type":"object"}' },
  });
});

test('a schema that is nested too deep to be written as JSON is refused by its place', () => {
  const schema = `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
  expect(() => recordedWith(JSON.parse(schema) as Record<string, unknown>)).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      details: { [path]: expect.objectContaining({ path: `/${path}` }) },
    }),
  );
});

test('a recorded format is usable unless its schema has a flaw', async () => {
  const flawOf = async (schema: string) => (schema === '{}' ? undefined : 'has a flaw');
  const schemas = { flawOf } as unknown as SchemaChecker;
  const check = (schema: Record<string, unknown>) =>
    requireUsableFormat({ schemas }, recordedWith(schema), 'acct_1');
  await check({});
  await requireUsableFormat({ schemas }, { type: 'json_object' }, 'acct_1');
  await expect(check({ type: 'x' })).rejects.toThrow('has a flaw');
});
