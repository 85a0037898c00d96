import { expect, test } from '@jest/globals';
import type { TurnlogError } from '../../../../../../shared/lib/errors/turnlogError.ts';
import { bodyValidator } from '../../../../../../services/api/http/errors/validation.ts';
import { DescribeSessionBody } from '../../../../../../services/api/sessions/descriptionSchemas.ts';
import { CreateAgentBody } from '../../../../../../services/api/agents/schemas.ts';
import { StartReplayBody } from '../../../../../../services/api/replays/schemas.ts';

const validate = bodyValidator(StartReplayBody);
const ALL = ['EqualsCheck', 'ContainsCheck', 'MatchesCheck', 'SchemaCheck', 'JudgeCheck'];

function saidOf(...checks: object[]): Record<string, string> {
  try {
    validate({ tools: 'recorded', budget: { tokens: 1 }, checks });
  } catch (error) {
    const details = Object.entries((error as TurnlogError).details ?? {});
    return Object.fromEntries(details.map(([field, { message }]) => [field, message]));
  }
  return {};
}

test.each<[string, object, string, string]>([
  ['an empty text', { matches: '' }, 'checks/0/matches', 'must not be empty.'],
  [
    'a field that is not known',
    { equals: 'a', session: 'b' },
    'checks/0/session',
    'is not a known field; known are turn, session_id, equals.',
  ],
  [
    'a field within a field',
    { judge: { model: 'a', criteria: 'b', mood: 'c' } },
    'checks/0/judge/mood',
    'is not a known field; known are model, criteria.',
  ],
])('of a check with %s it is said of that one', (_, check, field, message) => {
  expect(saidOf(check)).toEqual({ [field]: `"${field}" ${message}` });
});

test.each<[string, object]>([
  ['none', {}],
  ['two', { equals: 'a', contains: 'b' }],
])('where %s is given it is said which there are', (_, check) => {
  const message = `"checks/1" must be one of ${ALL.join(', ')}, as the OpenAPI document describes them.`;
  expect(saidOf({ equals: 'a' }, check)).toEqual({ 'checks/1': message });
});

test('of each of many checks it is said what is wrong with it', () => {
  const said = saidOf(...Array.from({ length: 12 }, () => ({ matches: '' })));
  expect(Object.keys(said)).toEqual(
    Array.from({ length: 12 }, (_, index) => `checks/${index}/matches`),
  );
});

test.each<[object, Record<string, string>]>([
  [{ labels: { a: 5 } }, { 'labels/a': 'must be string.' }],
  [
    { labels: 5, title: 5 },
    { labels: 'must be object.', title: 'must be string.' },
  ],
])('of a field that may be null it is not said that it must be: %j', (body, problems) => {
  const describe = bodyValidator(DescribeSessionBody);
  let details: TurnlogError['details'];
  try {
    describe(body);
  } catch (error) {
    ({ details } = error as TurnlogError);
  }
  const said = Object.entries(details ?? {}).map(([field, { message }]) => [field, message]);
  expect(Object.fromEntries(said)).toEqual(
    Object.fromEntries(
      Object.entries(problems).map(([field, problem]) => [field, `"${field}" ${problem}`]),
    ),
  );
});

test.each<[string, unknown, string, string]>([
  ['a missing member', { type: 'json_schema' }, '/json_schema', 'is required.'],
  ['no object', 'json_object', '', 'must be object.'],
  ['of none', { type: 'xml' }, '/type', 'must be one of text, json_object, json_schema.'],
])('the constant of a branch decides which one is meant: %s', (_, format, field, problem) => {
  const body = { name: 'a', instruction: 'b', model: 'c', response_format: format };
  const name = `response_format${field}`;
  expect(() => bodyValidator(CreateAgentBody)(body)).toThrow(
    `The request body is not valid: "${name}" ${problem}`,
  );
});
