import { expect, test } from '@jest/globals';
import {
  bodyOf,
  draftOf,
  EMPTY_DRAFT,
  errorsOf,
  exampleDraft,
  type AgentBody,
} from '../../../../../../services/console/src/agents/agentDraft.ts';

const NEEDED: AgentBody = { name: 'A', instruction: 'Be brief.', model: 'm' };
const BODIES: readonly AgentBody[] = [
  NEEDED,
  { ...NEEDED, temperature: 0, max_output_tokens: 1, tool: 'calculator,mcp:files' },
  { ...NEEDED, component: 'Wizard', compaction: true, response_format: { type: 'json_object' } },
  {
    ...NEEDED,
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'x', schema: { type: 'object' }, strict: true },
    },
  },
];

test.each(BODIES)('the form of %j stores the same agent again', (body) => {
  const { component = 'Chat', ...config } = body;
  expect(bodyOf(draftOf({ config, component }))).toEqual({ body });
});

test.each(['{', '[]', 'null', '"text"', ''])('%j is no JSON Schema', (schema) => {
  const draft = { ...EMPTY_DRAFT, format: 'json_schema', schema } as const;
  expect(bodyOf(draft)).toEqual({ errors: { schema: expect.any(String) } });
  expect(bodyOf({ ...draft, format: 'text' })).toHaveProperty('body');
});

test('each error of the API is shown at the field that it names', () => {
  const message = 'is wrong.';
  const details = {
    name: { message },
    tool: { message },
    'response_format/json_schema/schema/properties': { message },
    'response_format/json_schema/name': { message },
    max_output_tokens: { message },
    unknown: { message },
    temperature: 'not a detail',
  };
  expect(errorsOf(details)).toEqual({
    name: message,
    tools: message,
    schema: message,
    schemaName: message,
    maxOutputTokens: message,
  });
  expect(errorsOf(undefined)).toEqual({});
  expect(errorsOf('text')).toEqual({});
});

test('the example needs only what an installation has', () => {
  expect(exampleDraft(['offline-echo', 'other'], ['clock'])).toMatchObject({
    model: 'offline-echo',
    tools: [],
  });
  expect(exampleDraft(['m'], ['calculator']).tools).toEqual(['calculator']);
});
