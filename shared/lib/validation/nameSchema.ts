import { Type } from '../../domain/jsonSchema.ts';
import { TurnlogError } from '../errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { lazyValidator, problemsOf } from './validation.ts';

/**
 * Characters of a regular expression class: white space and invisible characters (Unicode's
 * Default_Ignorable_Code_Point and the empty braille cell) within 16 bits; beyond, regular
 * expressions of different languages differ. A name of only these looks empty.
 */
const BLANK =
  ' \\u00A0\\u00AD\\u034F\\u061C\\u115F\\u1160\\u1680\\u17B4\\u17B5\\u180B-\\u180F\\u2000-\\u200F\\u202F' +
  '\\u205F-\\u2065\\u206A-\\u206F\\u2800\\u3000\\u3164\\uFE00-\\uFE0F\\uFEFF\\uFFA0\\uFFF0-\\uFFFB';
/**
 * Characters of a class that affect terminals and tables: control characters, line separators, and
 * changes of text direction.
 */
const CONTROL = '\\u0000-\\u001F\\u007F-\\u009F\\u2028-\\u202E\\u2066-\\u2069';

/**
 * The name of an account, a key or an agent, stored as given. No part of the pattern can match what
 * the preceding part matches, so that checking takes linear time for any input.
 */
export const Name = Type.String({
  minLength: 1,
  maxLength: LIMITS.text.nameCharacters,
  pattern: `^[${BLANK}]*[^${BLANK}${CONTROL}][^${CONTROL}]*$`,
  'x-text': true,
  'x-rule': 'must have a visible character and no control characters or line breaks',
});

const validator = lazyValidator(Name);

/** Returns a valid name. Throws `invalid_request`. */
export function requireName(name: string): string {
  const validate = validator();
  if (validate(name)) return name;
  const [problem] = problemsOf(validate.errors, { minLength: () => 'must not be empty' });
  throw new TurnlogError('invalid_request', `The name ${problem?.message ?? 'is not valid'}.`);
}
