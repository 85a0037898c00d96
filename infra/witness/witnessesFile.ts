import { readFile } from 'node:fs/promises';
import { Type, type Static } from 'typebox';
import type { TurnlogError } from '../../shared/errors.ts';
import { LIMITS } from '../../shared/limits.ts';
import { badFile, unreadable, type Problems } from '../../shared/optionFile.ts';
import { COSIGNATURE, parseVkey, type NoteKey } from '../../shared/tlog/noteKeys.ts';
import { lazyValidator, problemsOf, type Words } from '../../shared/validation.ts';

const strict = { additionalProperties: false };

const WitnessesFile = Type.Object(
  {
    wanted: Type.Integer({ minimum: 1 }),
    witnesses: Type.Array(
      Type.Object(
        {
          url: Type.String({ pattern: '^https?://[^\\s@?#]+$', maxLength: 2_048 }),
          vkey: Type.String({ maxLength: 1_024 }),
        },
        strict,
      ),
      { minItems: 1, maxItems: LIMITS.witness.witnesses },
    ),
  },
  strict,
);
type WitnessesFile = Static<typeof WitnessesFile>;

/** Where a witness is, and the key of its cosignatures. */
export interface WitnessEntry {
  url: string;
  key: NoteKey;
}

/** The witnesses, and how many of them are wanted below a checkpoint. */
export interface WitnessPolicy {
  wanted: number;
  witnesses: WitnessEntry[];
}

const validator = lazyValidator(WitnessesFile);

const WORDS: Words = {
  additionalProperties: () => 'is not a known field',
  pattern: () => 'must be an http or https URL without credentials, query or fragment',
};

/** The key of a vkey, or what is wrong with it. */
function keyOf(vkey: string): NoteKey | string {
  try {
    const key = parseVkey(vkey);
    return key.type === COSIGNATURE
      ? key
      : 'must be the key of a witness (cosignature/v1, type 0x04), and is the key of a log';
  } catch (error) {
    return `is not valid: ${(error as TurnlogError).message}`;
  }
}

/** The witnesses of the file; what is wrong with one is added to the problems. */
function entriesOf({ witnesses }: WitnessesFile, problems: Problems): WitnessEntry[] {
  const entries: WitnessEntry[] = [];
  for (const [index, { url, vkey }] of witnesses.entries()) {
    const place = `/witnesses/${index}`;
    if (!URL.canParse(url)) problems[`${place}/url`] = 'must be a URL';
    const key = keyOf(vkey);
    if (typeof key === 'string') problems[`${place}/vkey`] = key;
    // Health tells witnesses by their names.
    else if (entries.some((other) => other.key.name === key.name))
      problems[`${place}/vkey`] = 'has the name of another witness of the file';
    else entries.push({ url, key });
  }
  return entries;
}

/**
 * Reads LOG_WITNESSES_FILE. Errors: `configuration_invalid` that lists every problem with its place
 * in the file.
 */
export async function readWitnessesFile(file: string): Promise<WitnessPolicy> {
  const bad = (problems: Problems, cause?: unknown): TurnlogError =>
    badFile({ option: 'LOG_WITNESSES_FILE', file }, problems, cause);
  let content: unknown;
  try {
    content = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw bad(unreadable(error), error);
  }
  const validate = validator();
  if (!validate(content)) {
    const found = problemsOf(validate.errors, WORDS);
    throw bad(Object.fromEntries(found.map(({ path, message }) => [path, message])));
  }
  const { wanted } = content;
  const problems: Problems = {};
  if (wanted > content.witnesses.length)
    problems['/wanted'] = 'must not be more than there are witnesses';
  const witnesses = entriesOf(content, problems);
  if (Object.keys(problems).length > 0) throw bad(problems);
  return { wanted, witnesses };
}
