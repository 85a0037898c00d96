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

/** The keys of the newest checkpoint, and those of them that the log declares, if it does. */
interface KnownKeys {
  keys: readonly NoteKey[];
  declared: readonly string[] | undefined;
}

/**
 * The keys of the newest checkpoint and of the one in a file. A given vkey is the one of the file, which
 * may be of an earlier tree; without a file it is that of the newest one.
 */
async function readKeys(
  { operator }: CliContext,
  vkey: string | undefined,
  hasFile: boolean,
): Promise<{ own: KnownKeys; ofFile: readonly NoteKey[] }> {
  const given = vkey === undefined ? undefined : [parseVkey(vkey)];
  if (given && !hasFile) return { own: { keys: given, declared: undefined }, ofFile: given };
  try {
    const { vkeys, declared } = await readVkeys(operator);
    const keys = vkeys.map(parseVkey);
    return { own: { keys, declared }, ofFile: given ?? keys };
  } catch (error) {
    // An auditor may have a copy of the log without the key that signs it.
    if (!given || !isTurnlogError(error, 'configuration_invalid')) throw error;
    return { own: { keys: given, declared: undefined }, ofFile: given };
  }
}

/**
 * The tree head of the log's newest checkpoint, or the reason why it is invalid: one of `keys`, and one
 * of those that the log declares, has to have signed it.
 */
function newestHead(text: string, { keys, declared }: KnownKeys): TreeHead | string {
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
  const { own, ofFile } = await readKeys(context, vkey, text !== undefined);
  const given = text === undefined ? undefined : openCheckpointFile(text, file!, ofFile).checkpoint;
  const newestKnown = newest === undefined ? undefined : newestHead(newest, own);
  const heads = [given, newestKnown].filter((head) => typeof head === 'object');
  const from = after === undefined ? 0 : await leafAfter(context, reader, after, size);
  if (from === undefined) {
    if (last === undefined || after! > last.position) return undefined;
    throw proofInvalidError(
      `The transparency log does not find the leaf of the event at ${after}, and has later ones: its entries, or what it keeps of where bundles begin, are damaged. Verify the whole log, without --after.`,
    );
  }
  const fault: TreeFault | undefined =
    typeof newestKnown === 'string'
      ? {
          index: Math.max(size - 1, 0),
          kind: 'tile',
          reason: `the newest checkpoint: ${newestKnown}`,
        }
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
