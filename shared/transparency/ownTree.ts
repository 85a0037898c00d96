/**
 * The tree of a log that its readers use. Only what the event log declares and a trusted key has signed
 * decides which tree that is, and how far it goes: anyone who can write to the stored trees can add
 * another one, or name it as the one that was opened last.
 */
import type { KeyObject } from 'node:crypto';
import { logIdAt, type IdentifiableLog } from '../eventlog/identity/logIdentity.ts';
import {
  isTurnlogError,
  proofInvalidError,
  storeUnavailableError,
} from '../lib/errors/turnlogError.ts';
import { missingTreeSentence, ownOrigin, readLogTrees, type LogTrees } from './logTrees.ts';
import { openCheckpoint } from './proof/openCheckpoint.ts';
import type { TileReader } from './tileStore.ts';
import type { CheckpointText } from './tlog/checkpoint.ts';
import { noteSigner, parseVkey, publicKeyOf } from './tlog/noteKeys.ts';

/** The trees of this log as they are stored. */
export interface StoredTrees {
  /** The name before the id in the origin of each tree. */
  name: string;
  treeOf(origin: string): TileReader;
  /** The keys that sign here; none if the key file is missing. */
  signingKeys(): readonly KeyObject[];
}

/** The newest checkpoint of the log's own tree. Never mutated: another checkpoint is another object. */
export interface SignedHead extends CheckpointText {
  /** The checkpoint with its signatures. */
  note: string;
  /** The last part of the origin. Trees with the same id have the same leaves. */
  treeId: string;
  /** The id of the log. */
  logId: string;
  /** Reads the tree. */
  reader: TileReader;
}

/**
 * A reader of the log's own tree, which is empty before its first checkpoint. Where `head` throws
 * `proof_invalid`, the other methods throw `store_unavailable`.
 */
export interface OwnTree extends TileReader {
  /**
   * The newest checkpoint that is signed by a key of the signing key file, where this process has it, and
   * by a key that the log declares. Of several trees with the same leaves, which a renamed log has, that of
   * the one with the most. A checkpoint that is older or not signed so is passed over once another is
   * known. Undefined while none is known of a tree that the log does not declare. Throws `proof_invalid`
   * where a declared tree has no such checkpoint, and `store_unavailable`.
   */
  head(): Promise<SignedHead | undefined>;
}

/**
 * Opens a checkpoint. A log of an earlier release declares no keys. Undefined without any key. Throws
 * `proof_invalid` unless a trusted key has signed it.
 */
function openTrusted(
  note: string,
  origin: string,
  { declared, signingKeys }: Pick<LogTrees, 'declared'> & Pick<StoredTrees, 'signingKeys'>,
): CheckpointText | undefined {
  const own = signingKeys().map((key) => noteSigner(origin, key).key);
  const keys = declared.get(origin)?.vkeys.map(parseVkey) ?? own;
  if (keys.length === 0) return undefined;
  const opened = openCheckpoint(note, keys);
  const trusted = own.map(publicKeyOf);
  if (own.length > 0 && opened.note.by.every((key) => !trusted.includes(publicKeyOf(key))))
    throw proofInvalidError(
      `The newest checkpoint of ${origin} was signed by none of the keys in the signing key file: either that file is not the one of the log's server, or the event log and the checkpoint were changed. Put back what was changed from a backup.`,
    );
  return opened.checkpoint;
}

/** Opens the log's own tree. */
export function openOwnTree(
  log: Pick<IdentifiableLog, 'firstEvent' | 'readStream'>,
  { name, treeOf, signingKeys }: StoredTrees,
): OwnTree {
  let head: SignedHead | undefined;
  let reading: Promise<SignedHead | undefined> | undefined;

  /** The newest checkpoint of one tree. */
  async function openHead(trees: LogTrees, origin: string): Promise<SignedHead | undefined> {
    const { declared, identity, treeId } = trees;
    const reader = treeOf(origin);
    const note = await reader.readCheckpoint();
    if (note === undefined && declared.has(origin))
      throw proofInvalidError(missingTreeSentence(origin));
    if (note === undefined) return undefined;
    if (head && note === head.note && origin === head.origin) return head;
    const checkpoint = openTrusted(note, origin, { declared, signingKeys });
    return checkpoint && { ...checkpoint, note, treeId, logId: logIdAt(identity), reader };
  }

  /** As `openHead`; undefined instead of `proof_invalid`. */
  const openOther = (trees: LogTrees, origin: string): Promise<SignedHead | undefined> =>
    openHead(trees, origin).catch((error: unknown) => {
      if (isTurnlogError(error, 'proof_invalid')) return undefined;
      throw error;
    });

  async function readHead(): Promise<SignedHead | undefined> {
    const trees = await readLogTrees(log);
    if (!trees) return undefined;
    const known = head?.treeId === trees.treeId ? head : undefined;
    const own = ownOrigin(trees, name);
    const others = [...trees.declared.keys()].filter(
      (origin) => origin !== own && origin.endsWith(`/${trees.treeId}`),
    );
    // A tree under an earlier name may have been signed with a key that is gone.
    const heads = await Promise.all([
      known ? openOther(trees, own) : openHead(trees, own),
      ...others.map((origin) => openOther(trees, origin)),
    ]);
    return heads.reduce(
      (newest, other) => (other && other.size > (newest?.size ?? -1) ? other : newest),
      known,
    );
  }

  /** Callers at the same time share one read. */
  const readNewest = (): Promise<SignedHead | undefined> =>
    (reading ??= readHead()
      .then((next) => (head = next))
      .finally(() => (reading = undefined)));

  /** As `readNewest`, for those who can do nothing about a checkpoint that is not trusted. */
  const readUsable = (): Promise<SignedHead | undefined> =>
    readNewest().catch((error: unknown) => {
      if (!isTurnlogError(error, 'proof_invalid')) throw error;
      throw storeUnavailableError(`The transparency log can't be used. ${error.message}`, error);
    });

  const reader = async (): Promise<TileReader | undefined> =>
    (head ?? (await readUsable()))?.reader;

  return {
    head: readNewest,
    read: async (path) => (await reader())?.read(path),
    readCheckpoint: async () => (await readUsable())?.note,
    beforeBundle: async (bundle) => (await reader())?.beforeBundle(bundle),
    state: async () => (await (await reader())?.state()) ?? { size: 0, checkpoint: undefined },
  };
}
