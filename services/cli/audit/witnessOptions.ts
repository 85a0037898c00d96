import { InvalidArgumentError, type Command } from 'commander';
import {
  distinctWitnesses,
  type Cosigners,
  type TrustedWitnesses,
} from '../../../shared/transparency/witnessPolicy.ts';
import { usageError } from '../failure.ts';
import { parseVkeyOption } from './checkpoints.ts';

/** The options of commands that look for cosignatures. */
export interface WitnessOptions {
  witness: string[];
  witnessesRequired?: number;
}

const collect = (value: string, before: string[]): string[] => [...before, parseVkeyOption(value)];

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,2}$/.test(text))
    throw new InvalidArgumentError('The number of witnesses is an integer from 1 to 999.');
  return Number(text);
}

export const addWitnessOptions = (command: Command): Command =>
  command
    .option('--witness <vkey>', 'a witness that is trusted; again for more', collect, [])
    .option(
      '--witnesses-required <k>',
      'how many of them must have cosigned (default: 1)',
      parseCount,
    );

/** Throws a usage error where more witnesses are required than given. */
export function parseWitnessPolicy({
  witness,
  witnessesRequired,
}: WitnessOptions): TrustedWitnesses {
  const count = distinctWitnesses(witness).length;
  if (witnessesRequired !== undefined && witnessesRequired > count)
    throw usageError(
      `--witnesses-required is ${witnessesRequired}, and --witness names ${count} different witnesses.`,
    );
  return { witnesses: witness, required: witnessesRequired };
}

/** The cosigners of a checkpoint, as text. */
export const describeCosigners = ({ cosigned, not_cosigned }: Cosigners): string[] => [
  cosigned.length > 0
    ? `Cosigned by ${cosigned.join(', ')}.`
    : 'No witness that is known here has cosigned it: name witnesses with --witness.',
  ...(not_cosigned.length > 0 ? [`Not cosigned by ${not_cosigned.join(', ')}.`] : []),
];
