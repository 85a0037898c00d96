import { afterAll, expect, test } from '@jest/globals';
import { createSchemaChecker } from '../../../../../infra/jsonschema/schemaChecker.ts';
import {
  requireTurnsOf,
  serializeChecks,
  type Check,
} from '../../../../../shared/replays/comparison/checks.ts';
import type { ChatModels } from '../../../../../shared/ports/chatModel.ts';

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
  await expect(serializeChecks({ models, schemas }, [check], 'acct_1')).rejects.toMatchObject({
    code: 'invalid_request',
    details: { [field]: { path: `/${field}` } },
  });
});

test('a schema that is nested too deep to be written as JSON is refused by its place', async () => {
  const json_schema = JSON.parse(`{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`) as object;
  const checks = [{ json_schema }] as Check[];
  await expect(serializeChecks({ models, schemas }, checks, 'acct_1')).rejects.toMatchObject({
    code: 'invalid_request',
    details: { 'checks/0/json_schema': { path: '/checks/0/json_schema' } },
  });
});

test('a judge that the provider may be about to list is unavailable', async () => {
  const awaiting = { ...models, awaitsList: () => true };
  const serialize = (model: string) =>
    serializeChecks({ models: awaiting, schemas }, [{ judge: { model, criteria } }], 'acct_1');
  await expect(serialize('other')).rejects.toMatchObject({ code: 'store_unavailable' });
  await expect(serialize('m')).resolves.toContain('judge');
});

test('checks that can be made are taken', async () => {
  const checks: Check[] = [
    { equals: '' },
    { matches: '^\\p{L}+$' },
    { json_schema: { type: 'object' } },
    { judge: { model: 'm', criteria } },
  ];
  await expect(serializeChecks({ models, schemas }, checks, 'acct_1')).resolves.toBe(
    JSON.stringify(checks),
  );
});

const SESSIONS = [
  { session_id: 'session_1', revision: 9, turns: 3 },
  { session_id: 'session_2', revision: 9, turns: 5, shared_turns: 2 },
];

test.each<[Check, { from?: number; up_to?: number }, string]>([
  [{ equals: 'a', session_id: 'session_3' }, {}, 'checks/0/session_id'],
  [{ equals: 'a', turn: 6 }, {}, 'checks/0/turn'],
  [{ equals: 'a', turn: 4, session_id: 'session_1' }, {}, 'checks/0/turn'],
  [{ equals: 'a', turn: 2, session_id: 'session_2' }, {}, 'checks/0/turn'],
  [{ equals: 'a', turn: 1 }, { from: 2 }, 'checks/0/turn'],
  [{ equals: 'a', turn: 3 }, { up_to: 2 }, 'checks/0/turn'],
])('%j of turns %j, which would never be made, is refused by its place', (check, turns, field) => {
  expect(() => requireTurnsOf([check], SESSIONS, turns)).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      details: { [field]: expect.objectContaining({ path: `/${field}` }) },
    }),
  );
});

test.each<[Check, { from?: number; up_to?: number }]>([
  [{ equals: 'a' }, { from: 9 }],
  [{ equals: 'a', session_id: 'session_2' }, {}],
  [{ equals: 'a', turn: 1 }, {}],
  [
    { equals: 'a', turn: 5 },
    { from: 5, up_to: 5 },
  ],
  [{ equals: 'a', turn: 3, session_id: 'session_2' }, {}],
])('%j of turns %j is taken', (check, turns) => {
  expect(() => requireTurnsOf([check], SESSIONS, turns)).not.toThrow();
});
