import { expect, test } from '@jest/globals';
import { Type as TypeBox } from 'typebox';
import { Type } from '../../../../shared/domain/jsonSchema.ts';
import { isProtectedTextSchema, ProtectedTextSchema } from '../../../../shared/domain/schema.ts';

type Build = typeof Type;

const BUILT: Readonly<Record<string, (type: Build) => object>> = {
  Array: (type) => type.Array(type.Null({ title: 'n' }), { maxItems: 1 }),
  Boolean: (type) => type.Boolean({ default: false }),
  Enum: (type) => type.Enum(['a', 'b'], { description: 'one' }),
  Integer: (type) => type.Integer({ minimum: 0 }),
  IsOptional: (type) => [type.Optional(type.Null()), type.Null()].map(type.IsOptional),
  Literal: (type) => ['a', 5, true].map((value) => type.Literal(value, { title: 'l' })),
  Null: (type) => type.Null({ title: 'n' }),
  Number: (type) => type.Number({ maximum: 1 }),
  Object: (type) =>
    type.Object(
      { a: type.Optional(type.String()), b: type.Null() },
      { additionalProperties: false, minProperties: 1 },
    ),
  'Object without a required member': (type) => type.Object({ a: type.Optional(type.Null()) }),
  'Object with a copy of an optional schema': (type) =>
    type.Object({ a: { ...type.Optional(type.Null()) } }),
  'Object with an optional schema of another form': (type) =>
    type.Object({ a: type.Unsafe(type.Optional(type.Null())) }),
  Optional: (type) => type.Optional(type.String({ maxLength: 1 })),
  Record: (type) => type.Record(type.String(), type.Number(), { maxProperties: 2 }),
  String: (type) => type.String({ minLength: 1, pattern: '^a' }),
  Union: (type) => type.Union([type.Null(), type.Literal('x')], { description: 'two' }),
  Unknown: (type) => type.Unknown({ title: 'u' }),
  Unsafe: (type) => type.Unsafe({ oneOf: [type.Null()] }),
};

test.each(Object.entries(BUILT))('builds the JSON of TypeBox: %s', (_name, build) => {
  expect(JSON.stringify(build(Type))).toBe(JSON.stringify(build(TypeBox)));
});

test('every function is compared', () => {
  expect(Object.keys(BUILT)).toEqual(expect.arrayContaining(Object.keys(Type)));
});

test('an optional schema is a copy that keeps symbols', () => {
  const text = ProtectedTextSchema();
  expect(isProtectedTextSchema(Type.Optional(text))).toBe(true);
  expect(Type.IsOptional(text)).toBe(false);
});
