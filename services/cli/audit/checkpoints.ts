import { InvalidArgumentError } from 'commander';
import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { ownOrigin, readLogTrees } from '../../../shared/transparency/logTrees.ts';
import type { SignedHead } from '../../../shared/transparency/ownTree.ts';
import { openCheckpoint } from '../../../shared/transparency/proof/openCheckpoint.ts';
import { parseNote } from '../../../shared/transparency/tlog/note.ts';
import {
  formatVkey,
  noteSigner,
  parseVkey,
  type NoteKey,
} from '../../../shared/transparency/tlog/noteKeys.ts';
import type { Operator } from '../../compose/operator/operator.ts';

/** The origin of a transparency log, and the keys that sign its checkpoints. */
interface LogKeys {
  origin: string;
  /** The keys of this configuration, the main one first. */
  vkeys: string[];
  /** The keys that the log declares; undefined for a log that was last signed before it did so. */
  declared: readonly string[] | undefined;
}

/**
 * Reads the keys of the tree of an origin, by default of the log's own. Throws
 * `configuration_invalid` for an empty log or without a key file.
 */
export async function readVkeys(
  { signing, store }: Pick<Operator, 'signing' | 'store'>,
  ofOrigin?: string,
): Promise<LogKeys> {
  const { origin: name, keys } = signing();
  const trees = await readLogTrees(store);
  if (!trees)
    throw new TurnlogError('configuration_invalid', 'The log is empty: it has no id yet.');
  const origin = ofOrigin ?? ownOrigin(trees, name);
  const vkeys = keys.map((key) => formatVkey(noteSigner(origin, key).key));
  return { origin, vkeys, declared: trees.declared.get(origin)?.vkeys };
}

/** Reads the newest checkpoint of the log's own tree. Throws `configuration_invalid` for a key file that can't be used. */
export async function readOwnHead({
  tiles,
}: Pick<Operator, 'tiles'>): Promise<SignedHead | undefined> {
  try {
    return await (await tiles()).head();
  } catch (error) {
    const { cause } = error as Error;
    throw isTurnlogError(cause, 'configuration_invalid') ? cause : error;
  }
}

/** Parses the vkey of an option, which may end with the line end of a file. */
export function parseVkeyOption(text: string): string {
  const vkey = text.trimEnd();
  try {
    parseVkey(vkey);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
  return vkey;
}

/** The first of the keys that has signed a checkpoint: a new key signs only after a restart. */
export function signingVkey(checkpoint: string, vkeys: readonly string[]): string {
  const { signatures } = parseNote(checkpoint);
  const hasSigned = (vkey: string): boolean => {
    const { name, id } = parseVkey(vkey);
    return signatures.some((line) => line.name === name && line.id === id);
  };
  return vkeys.find(hasSigned) ?? vkeys[0]!;
}

/** Opens the checkpoint of a file; throws `configuration_invalid` if it is not one of this log. */
export function openCheckpointFile(
  text: string,
  file: string,
  keys: readonly NoteKey[],
): ReturnType<typeof openCheckpoint> {
  try {
    return openCheckpoint(text, keys);
  } catch (error) {
    if (!isTurnlogError(error, 'proof_invalid')) throw error;
    throw new TurnlogError('configuration_invalid', `${file}: ${error.message}`);
  }
}
