import { describe, expect, test } from '@jest/globals';
import { Type } from '../../../../../../shared/domain/jsonSchema.ts';
import { textSchema } from '../../../../../../services/api/openapi/commonSchemas.ts';
import {
  bodyValidator,
  queryValidator,
} from '../../../../../../services/api/http/errors/validation.ts';
import type { TurnlogError } from '../../../../../../shared/lib/errors/turnlogError.ts';

const Schema = Type.Object(
  {
    name: textSchema({ maxLength: 3, description: '' }),
    blob: Type.Optional(textSchema({ maxBytes: 4, description: '' })),
    kind: Type.Optional(Type.Enum(['a', 'b'])),
  },
  { additionalProperties: false },
);
const Query = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, default: 7 })),
    on: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);

const checkBody = bodyValidator(Schema);
const checkQuery = queryValidator(Query);

function refusal(check: () => unknown): TurnlogError {
  try {
    check();
  } catch (error) {
    return error as TurnlogError;
  }
  throw new Error('it was accepted');
}
const messages = (input: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(refusal(() => checkBody(input)).details!).map(([field, { message }]) => [
      field,
      message,
    ]),
  );

describe('a body', () => {
  test('that fits passes unchanged', () => {
    const input = { name: '😀😀😀', blob: 'éé', kind: 'a' };
    expect(checkBody(input)).toBe(input);
    expect(input).toEqual({ name: '😀😀😀', blob: 'éé', kind: 'a' });
  });

  test('is never converted to the type that it should have', () => {
    expect(messages({ name: 1 })).toEqual({ name: '"name" must be string.' });
    expect(messages({ name: null })).toEqual({ name: '"name" must be string.' });
  });

  test('that does not fit is refused with every problem by field, what is allowed, and where it is', () => {
    expect(messages({ name: '', blob: 'ééé', kind: 'c', extra: 1 })).toEqual({
      name: '"name" must not be empty.',
      blob: '"blob" must not be longer than 4 bytes of UTF-8.',
      kind: '"kind" must be one of a, b.',
      extra: '"extra" is not a known field; known are name, blob, kind.',
    });
    const { code, message, details } = refusal(() => checkBody({ name: 'abcd' }));
    expect(code).toBe('invalid_request');
    expect(message).toBe(
      'The request body is not valid: "name" must NOT have more than 3 characters.',
    );
    expect(details).toEqual({
      name: { message: '"name" must NOT have more than 3 characters.', path: '/name' },
    });
  });

  test.each(['\0', 'a\0', '\ud800', '\udfff', 'a\udc00'])('with the text %j is refused', (name) => {
    expect(messages({ name })).toEqual({
      name: '"name" must be well-formed Unicode text without NUL characters.',
    });
  });

  test('with a field named __proto__ is refused by that name and changes no prototype', () => {
    const { details } = refusal(() =>
      checkBody(JSON.parse('{"name":"x","__proto__":{"polluted":true}}')),
    );
    expect(Object.keys(details!)).toEqual(['__proto__']);
    expect(JSON.parse(JSON.stringify({ details })).details).toHaveProperty([
      '__proto__',
      'message',
    ]);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('with more problems than anybody reads is refused with 20 of them, and names of bounded length', () => {
    const { details, message } = refusal(() =>
      checkBody(
        Object.fromEntries(
          Array.from({ length: 1_000 }, (_, index) => [`${index}-${'x'.repeat(1_000)}`, 1]),
        ),
      ),
    );
    expect(Object.keys(details!).length).toBe(20);
    for (const field of Object.keys(details!)) expect(field.length).toBeLessThanOrEqual(100);
    expect(message.length).toBeLessThan(1_000);
  });
});

describe('a query', () => {
  test('is converted to its types, and defaults are filled in', () => {
    expect(checkQuery({ limit: '5', on: 'true' })).toEqual({ limit: 5, on: true });
    expect(checkQuery({ on: 'false' })).toEqual({ limit: 7, on: false });
  });

  test.each([
    { limit: '' },
    { limit: '0' },
    { limit: '1.5' },
    { limit: 'x' },
    { limit: '0x10' },
    { limit: '1e2' },
    { limit: '+1' },
    { limit: ' 1' },
    { limit: '1\n' },
    { limit: ['1', '2'] },
    { limit: ['1', '1'] },
    { on: '1' },
    { on: 'TRUE' },
    { on: '' },
    { on: ['true'] },
  ])('is refused, with its place, for %j', (query) => {
    const [field] = Object.keys(query);
    expect(refusal(() => checkQuery({ ...query })).details).toEqual({
      [field!]: {
        message: expect.stringMatching(new RegExp(`^"${field}" must be`)),
        path: `query/${field}`,
      },
    });
  });
});
