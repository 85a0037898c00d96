import { expect, test } from '@jest/globals';
import {
  fieldsOf,
  diffFields,
  draftOf,
  EMPTY_DRAFT,
  errorsOf,
  type AgentFields,
  type StoredFields,
} from '../../../../../../services/console/src/agents/agentFields.ts';

const NEEDED: AgentFields = { name: 'A', instruction: 'Be brief.', model: 'm' };
const BODIES: readonly AgentFields[] = [
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
  expect(fieldsOf(draftOf({ config, component }))).toEqual({ ...config, component });
});

test('a schema that is not JSON is an error of syntax, where a schema is wanted', () => {
  const draft = { ...EMPTY_DRAFT, 'response_format/json_schema': '{"type":' };
  expect(() => fieldsOf({ ...draft, response_format: 'json_schema' })).toThrow(SyntaxError);
  expect(fieldsOf({ ...draft, response_format: 'text' }).response_format).toEqual({ type: 'text' });
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
  };
  expect(errorsOf(details)).toEqual({
    name: message,
    tool: message,
    'response_format/json_schema': message,
    'response_format/json_schema/name': message,
    max_output_tokens: message,
  });
  expect(errorsOf(undefined)).toEqual({});
  expect(errorsOf(false)).toEqual({});
});

const BASE: StoredFields = {
  component: 'Chat',
  config: { name: 'A', instruction: 'One\nTwo', model: 'm', temperature: 0 },
};
const changed = (config: Partial<AgentFields>, component = 'Chat'): StoredFields => ({
  component,
  config: { ...BASE.config, ...config },
});

test('equal configurations differ in no field', () => {
  expect(diffFields(BASE, changed({}))).toEqual([]);
});

test('a field that is not set differs from one that is, also from 0', () => {
  expect(diffFields(BASE, changed({ temperature: undefined, tool: 'clock' }))).toEqual([
    { field: 'Tools', before: undefined, after: 'clock', isText: false },
    { field: 'Temperature', before: '0', after: undefined, isText: false },
  ]);
});

test('texts of several lines are compared by lines, a schema as indented JSON', () => {
  const after = changed({ instruction: 'One', response_format: { type: 'text' } }, 'Wizard');
  expect(diffFields(BASE, after)).toEqual([
    {
      field: 'Response format',
      before: undefined,
      after: '{\n  "type": "text"\n}',
      isText: true,
    },
    { field: 'Component', before: 'Chat', after: 'Wizard', isText: false },
    { field: 'Instruction', before: 'One\nTwo', after: 'One', isText: true },
  ]);
});
