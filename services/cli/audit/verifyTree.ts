import { isTurnlogError, proofInvalidError } from '../../../shared/lib/errors/turnlogError.ts';
import { parseConfig } from '../../../shared/lib/config/config.ts';
import { decodeEvent } from '../../../shared/eventlog/codec.ts';
import type { Checkpoint, Position, StoredEvent } from '../../../shared/ports/eventStore.ts';
import {
  missingTreeSentence,
  ownOrigin,
  readLogTrees,
} from '../../../shared/transparency/logTrees.ts';
import type { TileReader } from '../../../shared/transparency/tileStore.ts';
import { describeTreeChange } from '../../../shared/transparency/proof/describeTreeChange.ts';
import { openCheckpoint } from '../../../shared/transparency/proof/openCheckpoint.ts';
import type { TreeChecker } from '../../../shared/transparency/proof/treeChecker.ts';
import type { TreeFault } from '../../../shared/transparency/proof/treeFault.ts';
import { findLeafIndex } from '../../../shared/transparency/tlog/leaf.ts';
import { formatVkey, parseVkey, type NoteKey } from '../../../shared/transparency/tlog/noteKeys.ts';
import type { TreeHead } from '../../../shared/transparency/tlog/verify.ts';
import { openCheckpointFile, readOwnHead, readVkeys } from './checkpoints.ts';
import { readTextFile } from '../textFile.ts';
import type { CliContext } from '../context.ts';

export interface TreeOptions {
  after?: Position;
  checkpoint?: string;
  vkey?: string;
}

/** A position from which on the tree is compared, and the checkpoint of an earlier comparison. */
interface ContinuedTree {
  after?: Position | undefined;
  signed: string;
}

/** The transparency log as a verification compares it. */
export interface ComparedTree {
  reader: TileReader;
  /** The number of leaves at the start of the verification. */
  size: number;
  /** The event of the last leaf, as the tree's state says it, which is not signed. */
  last: Checkpoint | undefined;
  /** The newest checkpoint, as signed. */
  signed: string | undefined;
  checker: TreeChecker;
  /** The checkpoint that the operator named. */
  given: TreeHead | undefined;
  /** The fault of the newest checkpoint. */
  fault: TreeFault | undefined;
  /** Why the tree is not compared, in a sentence: the log declares it, and it has no checkpoint. */
  missing: string | undefined;
}

/** The tree that the event log names. */
interface OwnTree {
  /** Undefined for an empty log: then the tree that was opened last is read. */
  origin: string | undefined;
  isDeclared: boolean;
}

/** Finds the tree of the log: of several, the one that its readers use, if its checkpoint is trusted. */
async function findOwnTree({ operator, env }: CliContext): Promise<OwnTree> {
  const trees = await readLogTrees(operator.store);
  if (!trees) return { origin: undefined, isDeclared: false };
  const own = ownOrigin(trees, parseConfig(env).LOG_ORIGIN);
  const head = await readOwnHead(operator).catch((error: unknown) => {
    // The verification says why, or uses the key that was given.
    const reported = ['proof_invalid', 'configuration_invalid'] as const;
    if (reported.some((code) => isTurnlogError(error, code))) return undefined;
    throw error;
  });
  return { origin: head?.origin ?? own, isDeclared: trees.declared.has(own) };
}

/** The keys of the newest checkpoint, and those of them that the log declares, if it does. */
interface KnownKeys {
  keys: readonly NoteKey[];
  declared: readonly string[] | undefined;
}

const NO_KEYS = { own: { keys: [], declared: undefined }, ofFile: [] };

/**
 * The keys of the newest checkpoint and of the one in a file. A given vkey is the one of the file, which
 * may be of an earlier tree; without a file it is that of the newest one.
 */
async function readKeys(
  { operator }: CliContext,
  {
    vkey,
    hasFile,
    origin,
  }: { vkey: string | undefined; hasFile: boolean; origin: string | undefined },
): Promise<{ own: KnownKeys; ofFile: readonly NoteKey[] }> {
  const statedKeys = vkey === undefined ? undefined : [parseVkey(vkey)];
  if (statedKeys && !hasFile)
    return { own: { keys: statedKeys, declared: undefined }, ofFile: statedKeys };
  try {
    const { vkeys, declared } = await readVkeys(operator, origin);
    const keys = vkeys.map(parseVkey);
    return { own: { keys, declared }, ofFile: statedKeys ?? keys };
  } catch (error) {
    // An auditor may have a copy of the log without the key that signs it.
    if (!statedKeys || !isTurnlogError(error, 'configuration_invalid')) throw error;
    return { own: { keys: statedKeys, declared: undefined }, ofFile: statedKeys };
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
  const index = await findLeafIndex(reader, { position: after, hash }, size);
  return index === undefined ? undefined : index + 1;
}

/**
 * Opens the transparency log for a comparison; undefined if there is neither one nor a checkpoint. Throws
 * `proof_invalid` if it can't be compared from `after` on, or `continued` was not signed by its keys.
 */
export async function openComparedTree(
  context: CliContext,
  options: TreeOptions,
  continued?: ContinuedTree,
): Promise<ComparedTree | undefined> {
  const { after, checkpoint: file, vkey } = { ...options, ...continued };
  const { operator } = context;
  const { origin, isDeclared } = await findOwnTree(context);
  const reader = await (origin === undefined ? operator.lastTree() : operator.treeOf(origin));
  // In this order: a running server may sign a larger tree meanwhile.
  const newest = await reader.readCheckpoint();
  const { size, checkpoint: last } = await reader.state();
  const text = file === undefined ? undefined : await readTextFile(file);
  const missing = isDeclared && newest === undefined ? missingTreeSentence(origin!) : undefined;
  if (size === 0 && newest === undefined && text === undefined && !missing) return undefined;
  const hasFile = text !== undefined;
  const { own, ofFile } =
    missing !== undefined && !hasFile
      ? NO_KEYS
      : await readKeys(context, { vkey, hasFile, origin });
  const statedCheckpoint =
    text === undefined ? undefined : openCheckpointFile(text, file!, ofFile).checkpoint;
  const earlier = continued && openCheckpoint(continued.signed, own.keys).checkpoint;
  const newestKnown = newest === undefined ? undefined : newestHead(newest, own);
  const heads = [statedCheckpoint, earlier, newestKnown].filter((head) => typeof head === 'object');
  // No signature tells an event behind the last leaf from one that was changed.
  const isEmpty = size === 0 && heads.every((head) => head.size === 0);
  const from = after === undefined || isEmpty ? 0 : await leafAfter(context, reader, after, size);
  if (from === undefined)
    throw proofInvalidError(
      `The transparency log does not find the leaf of the event at ${after}: that event is newer than its last leaf, or was changed, or the index of bundles is damaged.${continued ? '' : ' Verify the whole log, without --after.'}`,
    );
  const fault: TreeFault | undefined =
    typeof newestKnown === 'string'
      ? {
          index: Math.max(size - 1, 0),
          kind: 'tile',
          reason: `the newest checkpoint: ${newestKnown}`,
        }
      : undefined;
  const checker = await operator.compareTree({ size, heads, from }, origin);
  return { reader, size, last, signed: newest, checker, given: statedCheckpoint, fault, missing };
}

/** The first difference between the log and its tree, in a sentence, with the event that it names. */
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
    reason: await describeTreeChange(where, { index, found, expected }),
  };
}
