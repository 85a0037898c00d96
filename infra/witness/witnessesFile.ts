import type { Static } from 'typebox';
import { Type } from '../../shared/domain/jsonSchema.ts';
import type { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import { COSIGNATURE, parseVkey } from '../../shared/transparency/tlog/noteKeys.ts';
import { lazyValidator, type ProblemMessages } from '../../shared/lib/validation/validation.ts';
import {
  readJsonFile,
  requireNoProblems,
  schemaProblems,
  type Problems,
} from '../lib/optionFile.ts';

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
/** The witnesses, and the number of cosignatures a checkpoint needs. Plain data, for a thread. */
export type WitnessesFile = Static<typeof WitnessesFile>;

const validator = lazyValidator(WitnessesFile);

const WORDS: ProblemMessages = {
  pattern: () => 'must be an http or https URL without credentials, query or fragment',
};

/** The name in the vkey of a witness, or the problem with the vkey. */
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

/** The problems that the schema does not cover. */
function problemsIn({ wanted, witnesses }: WitnessesFile): Problems {
  const problems: Problems = {};
  const names = new Set<string>();
  if (wanted > witnesses.length) problems['/wanted'] = 'must not be more than there are witnesses';
  for (const [index, { url, vkey }] of witnesses.entries()) {
    const pointer = `/witnesses/${index}`;
    if (!URL.canParse(url)) problems[`${pointer}/url`] = 'must be a URL';
    const parsed = nameIn(vkey);
    if ('problem' in parsed) problems[`${pointer}/vkey`] = parsed.problem;
    // Health reports identify witnesses by name.
    else if (names.has(parsed.name))
      problems[`${pointer}/vkey`] = 'has the name of another witness of the file';
    else names.add(parsed.name);
  }
  return problems;
}

/**
 * Reads LOG_WITNESSES_FILE. Throws `configuration_invalid` with the location of every problem.
 */
export async function readWitnessesFile(file: string): Promise<WitnessesFile> {
  const source = { option: 'LOG_WITNESSES_FILE', file };
  const content = await readJsonFile(source);
  requireNoProblems(source, schemaProblems(validator(), content, WORDS));
  const witnesses = content as WitnessesFile;
  requireNoProblems(source, problemsIn(witnesses));
  return witnesses;
}
