import { afterAll, expect, test } from '@jest/globals';
import { createSchemaChecker } from '../../../infra/jsonschema/schemaChecker.ts';
import { requireChecks, type Check } from '../../../shared/commands/replays/checks.ts';
import type { ChatModels } from '../../../shared/ports/chatModel.ts';

const schemas = createSchemaChecker();
afterAll(async () => {
  await schemas[Symbol.asyncDispose]();
});

const MODELS = [{ id: 'm', provider: 'p', upstream_model: 'm', context_window: 9 }];
const models = {
  list: () => MODELS,
  find: (id: string) => MODELS.find((model) => model.id === id),
} as unknown as ChatModels;
const criteria = 'Says four.';

test.each<[Check, string]>([
  [{ matches: '(' }, 'checks/0/matches'],
  [{ json_schema: { type: 'nothing' } }, 'checks/0/json_schema'],
  [{ json_schema: { $ref: 'https://example.com' } }, 'checks/0/json_schema'],
  [{ judge: { model: 'other', criteria } }, 'checks/0/judge/model'],
])('%j is refused by its place', async (check, field) => {
  await expect(requireChecks({ models, schemas }, [check], 'acct_1')).rejects.toMatchObject({
    code: 'invalid_request',
    details: { [field]: { path: `/${field}` } },
  });
});

test('checks that can be made are taken', async () => {
  const checks: Check[] = [
    { equals: '' },
    { matches: '^\\p{L}+$' },
    { json_schema: { type: 'object' } },
    { judge: { model: 'm', criteria } },
  ];
  await expect(requireChecks({ models, schemas }, checks, 'acct_1')).resolves.toBeUndefined();
});
