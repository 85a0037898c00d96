import { expect, test } from '@jest/globals';
import { Type } from '../../../../../shared/domain/jsonSchema.ts';
import { lazyValidator } from '../../../../../shared/lib/validation/validation.ts';

const schema = Type.Object({ name: Type.String() }, { additionalProperties: false });

test('an inherited property is neither an unknown field nor a required one', () => {
  const validate = lazyValidator(schema)();
  const given = (own: object): object => Object.setPrototypeOf({ ...own }, { other: 1, name: 'x' });
  expect(validate(given({ name: 'y' }))).toBe(true);
  expect(validate(given({}))).toBe(false);
});
