import { readFile } from 'node:fs/promises';
import { Type, type Static } from 'typebox';
import type { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import { badFile, unreadable, type Problems } from '../../shared/lib/config/configFileErrors.ts';
import { COSIGNATURE, parseVkey } from '../../shared/transparency/tlog/noteKeys.ts';
import {
  lazyValidator,
  problemsOf,
  type ProblemMessages,
} from '../../shared/lib/validation/validation.ts';

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
/** Who is asked, and how many are wanted below a checkpoint; plain data, for a thread. */
export type WitnessesFile = Static<typeof WitnessesFile>;

const validator = lazyValidator(WitnessesFile);

const WORDS: ProblemMessages = {
  additionalProperties: () => 'is not a known field',
  pattern: () => 'must be an http or https URL without credentials, query or fragment',
};

/** The name of a witness's vkey, or what is wrong with that. */
function nameIn(vkey: string): { name: string } | { problem: string } {
  try {
    const { name, type } = parseVkey(vkey);
    return type === COSIGNATURE
      ? { name }
      : {
          problem:
            'must be the key of a witness (cosignature/v1, type 0x04), and is the key of a log',
        };
  } catch (error) {
    return { problem: `is not valid: ${(error as TurnlogError).message}` };
  }
}

/** What is wrong with the file beyond its form. */
function problemsIn({ wanted, witnesses }: WitnessesFile): Problems {
  const problems: Problems = {};
  const names = new Set<string>();
  if (wanted > witnesses.length) problems['/wanted'] = 'must not be more than there are witnesses';
  for (const [index, { url, vkey }] of witnesses.entries()) {
    const place = `/witnesses/${index}`;
    if (!URL.canParse(url)) problems[`${place}/url`] = 'must be a URL';
    const said = nameIn(vkey);
    if ('problem' in said) problems[`${place}/vkey`] = said.problem;
    // Health tells witnesses by their names.
    else if (names.has(said.name))
      problems[`${place}/vkey`] = 'has the name of another witness of the file';
    else names.add(said.name);
  }
  return problems;
}

/**
 * Reads LOG_WITNESSES_FILE. Errors: `configuration_invalid` that lists every problem with its place
 * in the file.
 */
export async function readWitnessesFile(file: string): Promise<WitnessesFile> {
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
  const problems = problemsIn(content);
  if (Object.keys(problems).length > 0) throw bad(problems);
  return content;
}
