import type { TProperties } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { sessionIdFilter, textSchema } from '../openapi/commonSchemas.ts';

const { replays: OF } = LIMITS;
const strict = { additionalProperties: false };

const which = {
  turn: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 999_999_999, description: 'Only turns of this number' }),
  ),
  session_id: Type.Optional(sessionIdFilter('Only turns of this recorded session')),
};
const check = <Expected extends TProperties>(
  title: string,
  description: string,
  expected: Expected,
) => Type.Object({ ...which, ...expected }, { ...strict, title, description });

const Equals = check('EqualsCheck', 'The answer is this text', {
  equals: Type.String({ maxLength: OF.checkChars, 'x-text': true, examples: ['42'] }),
});
const Contains = check('ContainsCheck', 'This text is in the answer', {
  contains: textSchema({
    maxLength: OF.checkChars,
    description: 'In the answer',
    examples: ['42'],
  }),
});
const Matches = check('MatchesCheck', 'A regular expression matches the answer, or a part of it', {
  matches: textSchema({
    maxLength: OF.patternChars,
    description: 'A regular expression of ECMAScript, with the flag u',
    examples: ['^\\d+$'],
  }),
});
const Schema = check('SchemaCheck', 'The answer is JSON that matches a schema', {
  json_schema: Type.Record(Type.String(), Type.Unknown(), {
    description: `A JSON Schema (2020-12) without external references, at most ${LIMITS.responseFormat.schemaBytes} bytes as JSON and ${LIMITS.responseFormat.patternClasses} character classes in patterns; formats are not checked`,
    examples: [{ type: 'object', required: ['sum'] }],
  }),
});
const Judge = check('JudgeCheck', 'A model judges that the answer fulfils the criteria', {
  judge: Type.Object(
    {
      model: textSchema({
        maxLength: LIMITS.text.referenceCharacters,
        offered: 'models',
        description: 'The model that judges, in a session of its own',
      }),
      criteria: textSchema({
        maxLength: OF.checkChars,
        description: 'The criteria for the answer',
        examples: ['Says how long a refund takes.'],
      }),
    },
    { ...strict, title: 'Judge', description: 'The judge and its criteria' },
  ),
});

export const Checks = Type.Array(Type.Union([Equals, Contains, Matches, Schema, Judge]), {
  minItems: 1,
  maxItems: OF.checks,
  description: `Checks of the answers of replayed turns, ${OF.checksBytes} bytes as JSON at the most; each is made of all turns, but where it names a turn or a session`,
});
