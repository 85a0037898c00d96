import { isTurnlogError, proofInvalidError } from '../../../shared/lib/errors/turnlogError.ts';
import { decodeEvent } from '../../../shared/eventlog/codec.ts';
import type { Position, StoredEvent } from '../../../shared/ports/eventStore.ts';
import type { TileReader } from '../../../shared/transparency/tileStore.ts';
import { nameChange } from '../../../shared/transparency/proof/nameChange.ts';
import { openCheckpoint } from '../../../shared/transparency/proof/openCheckpoint.ts';
import type { TreeChecker } from '../../../shared/transparency/proof/treeChecker.ts';
import type { TreeFault } from '../../../shared/transparency/proof/treeFault.ts';
import { leafIndexOf } from '../../../shared/transparency/tlog/leaf.ts';
import { formatVkey, parseVkey, type NoteKey } from '../../../shared/transparency/tlog/noteKeys.ts';
import type { TreeHead } from '../../../shared/transparency/tlog/verify.ts';
import { openCheckpointFile, readTextFile, readVkeys } from './checkpoints.ts';
import type { CliContext } from '../context.ts';

export interface TreeOptions {
  after?: Position;
  checkpoint?: string;
  vkey?: string;
}

/** The transparency log as a verification compares it. */
export interface ComparedTree {
  reader: TileReader;
  /** The number of leaves at the start of the verification. */
  size: number;
  checker: TreeChecker;
  /** The checkpoint that the operator named. */
  given: TreeHead | undefined;
  /** The fault of the newest checkpoint. */
  fault: TreeFault | undefined;
}

/**
 * The tree head of the log's newest checkpoint, or the reason why it is invalid: one of `keys`, and one
 * of those that the log declares, has to have signed it.
 */
function newestHead(
  text: string,
  keys: readonly NoteKey[],
  declared: readonly string[] | undefined,
): TreeHead | string {
  try {
    const { note, checkpoint } = openCheckpoint(text, keys);
    return !declared || note.by.some((key) => declared.includes(formatVkey(key)))
      ? checkpoint
      : `it was signed by none of the keys that the event log declares (${declared.join(', ')})`;
  } catch (error) {
    if (isTurnlogError(error, 'proof_invalid')) return error.message;
    throw error;
  }
}

/** The leaf after the event at a position; undefined if the event has no leaf. */
async function leafAfter(
  { operator }: CliContext,
  reader: TileReader,
  after: Position,
  size: number,
): Promise<number | undefined> {
  const event = await operator.store.eventAt(after);
  if (!event) return undefined;
  const { hash } = decodeEvent(event).metadata;
  const index = await leafIndexOf(reader, { position: after, hash }, size);
  return index === undefined ? undefined : index + 1;
}

/**
 * Opens the transparency log for a comparison; undefined if there is neither one nor a checkpoint, or
 * if the verification continues from an event without a leaf.
 */
export async function openComparedTree(
  context: CliContext,
  { after, checkpoint: file, vkey }: TreeOptions,
): Promise<ComparedTree | undefined> {
  const reader = await context.operator.tiles();
  // In this order: a running server may sign a larger tree meanwhile.
  const newest = await reader.readCheckpoint();
  const { size, checkpoint: last } = await reader.state();
  const text = await readTextFile(file);
  if (size === 0 && newest === undefined && text === undefined) return undefined;
  const known = await readVkeys(context.operator, vkey);
  const keys = known.vkeys.map(parseVkey);
  const given = text === undefined ? undefined : openCheckpointFile(text, file!, keys).checkpoint;
  const own = newest === undefined ? undefined : newestHead(newest, keys, known.declared);
  const heads = [given, own].filter((head) => typeof head === 'object');
  const from = after === undefined ? 0 : await leafAfter(context, reader, after, size);
  if (from === undefined) {
    if (last === undefined || after! > last.position) return undefined;
    throw proofInvalidError(
      `The transparency log does not find the leaf of the event at ${after}, and has later ones: its entries, or what it keeps of where bundles begin, are damaged. Verify the whole log, without --after.`,
    );
  }
  const fault: TreeFault | undefined =
    typeof own === 'string'
      ? { index: Math.max(size - 1, 0), kind: 'tile', reason: `the newest checkpoint: ${own}` }
      : undefined;
  const checker = await context.operator.compareTree({ size, heads, from });
  return { reader, size, checker, given, fault };
}

/** Where the log and its tree differ first, in a sentence, with the event that is named. */
export interface LocatedFault {
  index: number;
  kind: TreeFault['kind'];
  event: Pick<StoredEvent, 'id' | 'stream' | 'revision' | 'position'> | null;
  reason: string;
}

/** Identifies the event that a fault concerns. */
export async function locateFault(
  { operator, signal }: CliContext,
  { reader, size }: ComparedTree,
  { index, kind, reason, expected = '' }: TreeFault,
  found: StoredEvent | undefined,
): Promise<LocatedFault> {
  if (kind !== 'event' || !found) return { index, kind, event: null, reason };
  const where = { store: operator.store, reader, size, signal };
  const { id, stream, revision, position } = found;
  return {
    index,
    kind,
    event: { id, stream, revision, position },
    reason: await nameChange(where, { index, found, expected }),
  };
}
