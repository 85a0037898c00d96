import { expect, test } from '@jest/globals';
import { toRecordedParameters } from '../../../../shared/agents/validateParameters.ts';
import type { SchemaChecker } from '../../../../shared/ports/schemaChecker.ts';

const schemas = { flawOf: async () => undefined } as unknown as SchemaChecker;

const recordedWith = (schema: Record<string, unknown>) =>
  toRecordedParameters(
    { schemas },
    { response_format: { type: 'json_schema', json_schema: { name: 'n', schema } } },
    'acct_1',
  );

test('a schema is recorded as its text', async () => {
  expect(await recordedWith({ type: 'object' })).toEqual({
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'n', schema: '{"type":"object"}' },
    },
  });
});

test('a schema that is nested too deep to be written as JSON is refused by its place', async () => {
  const schema = `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
  const path = 'response_format/json_schema/schema';
  await expect(recordedWith(JSON.parse(schema) as Record<string, unknown>)).rejects.toMatchObject({
    code: 'invalid_request',
    details: { [path]: { path: `/${path}` } },
  });
});
