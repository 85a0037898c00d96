/**
 * The tree of a log that its readers use. The declaration in the event log and the signature of a trusted
 * key decide which tree that is, and how far it goes: an account that can write to the stored trees could
 * add another one, or name it as the one that was opened last.
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
import { parseCheckpoint, type CheckpointText } from './tlog/checkpoint.ts';
import { parseNote } from './tlog/note.ts';
import { noteSigner, parseVkey, publicKeyOf } from './tlog/noteKeys.ts';

/** The trees of this log as they are stored. */
export interface StoredTrees {
  /** The name before the id in the origin of each tree. */
  name: string;
  treeOf(origin: string): TileReader;
  /** The keys that sign here; none if the key file is missing. */
  signingKeys(): readonly KeyObject[];
  /** True where this process declares the tree of its name. Until then another server may have the tree. */
  declares?: boolean;
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
   * The newest checkpoint that a key of the signing key file has signed, where this process has that file,
   * and a key that the log declares. A renamed log has several trees with the same leaves: the largest one
   * counts. Once a checkpoint is known, one that is older or not trusted does not replace it (`doubt`).
   * Undefined while the log declares no tree. Throws `proof_invalid` where a declared tree has no trusted
   * checkpoint, and `store_unavailable`.
   */
  head(): Promise<SignedHead | undefined>;
  /** Why the newest checkpoint did not replace the known one, in sentences, at the last call of `head`. */
  doubt(): string | undefined;
}

/** Throws `proof_invalid` for a stored checkpoint that is none, such as an empty file. */
function requireCheckpoint(note: string, origin: string): void {
  try {
    parseCheckpoint(parseNote(note).text);
  } catch (error) {
    throw proofInvalidError(
      `The checkpoint of ${origin} is damaged: ${(error as Error).message} Put it back from a backup.`,
      error,
    );
  }
}

/** Trees under other names that are looked at: those that came last in the log. */
const MAX_OTHERS = 16;
/** How long the tree is taken for the newest one by reads of tiles. */
const FRESH_MS = 1_000;

/**
 * Opens a checkpoint of an origin. A log of an earlier release declares no keys. Undefined without any key.
 * Throws `proof_invalid` unless a declared key, and one of those given, have signed it.
 */
function openTrusted(
  note: string,
  origin: string,
  { declared, keys }: Pick<LogTrees, 'declared'> & { keys: readonly KeyObject[] },
): CheckpointText | undefined {
  const own = keys.map((key) => noteSigner(origin, key).key);
  const accepted = declared.get(origin)?.vkeys.map(parseVkey) ?? own;
  if (accepted.length === 0) return undefined;
  const { note: opened, checkpoint } = openCheckpoint(note, accepted);
  if (checkpoint.origin !== origin)
    throw proofInvalidError(
      `The newest checkpoint of ${origin} is of another log, ${checkpoint.origin}. Put it back from a backup.`,
    );
  const trusted = own.map(publicKeyOf);
  if (own.length > 0 && opened.by.every((key) => !trusted.includes(publicKeyOf(key))))
    throw proofInvalidError(
      `The newest checkpoint of ${origin} was signed by none of the keys in the signing key file: either that file is not the one of the log's server, or the event log and the checkpoint were changed. Put back what was changed from a backup.`,
    );
  return checkpoint;
}

/** Opens the log's own tree. */
export function openOwnTree(
  log: Pick<IdentifiableLog, 'firstEvent' | 'readStream'>,
  { name, treeOf, signingKeys, declares = false }: StoredTrees,
): OwnTree {
  /** The newest checkpoint of each tree that was opened. */
  const opened = new Map<string, SignedHead>();
  let head: SignedHead | undefined;
  let readAt = -Infinity;
  let reading: Promise<SignedHead | undefined> | undefined;
  let doubt: string | undefined;
  let keys: readonly KeyObject[] = [];

  /** Keeps the keys that were read before where the file can't be read for a moment. */
  function readKeys(): void {
    try {
      keys = signingKeys();
    } catch (error) {
      if (keys.length === 0)
        throw storeUnavailableError('The signing key file can’t be read: see the log.', error);
    }
  }

  /** Opens a checkpoint with the keys that were read, and with those of the file if it is not trusted. */
  function openNewest(
    note: string,
    origin: string,
    { declared }: LogTrees,
  ): CheckpointText | undefined {
    if (keys.length === 0) readKeys();
    try {
      return openTrusted(note, origin, { declared, keys });
    } catch (error) {
      if (!isTurnlogError(error, 'proof_invalid')) throw error;
      readKeys();
      return openTrusted(note, origin, { declared, keys });
    }
  }

  /** The newest checkpoint of one tree. */
  async function openHead(trees: LogTrees, origin: string): Promise<SignedHead | undefined> {
    const reader = treeOf(origin);
    const note = await reader.readCheckpoint();
    const isDue = trees.declared.has(origin) && (!declares || origin === `${name}/${trees.treeId}`);
    if (note === undefined && isDue) throw proofInvalidError(missingTreeSentence(origin));
    if (note === undefined) return undefined;
    const before = opened.get(origin);
    if (before?.note === note) return before;
    requireCheckpoint(note, origin);
    const checkpoint = openNewest(note, origin, trees);
    if (!checkpoint) return undefined;
    const { treeId, identity } = trees;
    const next = { ...checkpoint, note, treeId, logId: logIdAt(identity), reader };
    opened.set(origin, next);
    return next;
  }

  /** The tree under an earlier name may have been signed with a key that is gone. */
  const openOther = (trees: LogTrees, origin: string): Promise<SignedHead | undefined> =>
    openHead(trees, origin).catch((error: unknown) => {
      if (isTurnlogError(error, 'proof_invalid')) return undefined;
      throw error;
    });

  /** The newest checkpoint of the tree that has to have one. `known` stays the newest where it can't be taken. */
  async function openOwn(
    trees: LogTrees,
    own: string,
    knownHead: SignedHead | undefined,
  ): Promise<SignedHead | undefined> {
    try {
      if (trees.damage !== undefined) throw proofInvalidError(trees.damage);
      const next = await openHead(trees, own);
      const isOlder = next !== undefined && knownHead?.origin === own && next.size < knownHead.size;
      doubt = isOlder
        ? `The checkpoint of ${own} has ${next.size} leaves, and ${knownHead.size} were signed. Put it back from a backup.`
        : undefined;
      return next;
    } catch (error) {
      if (!knownHead || !isTurnlogError(error, 'proof_invalid')) throw error;
      doubt = error.message;
      return undefined;
    }
  }

  async function readHead(): Promise<SignedHead | undefined> {
    const trees = await readLogTrees(log);
    if (!trees) return undefined;
    const { treeId, sameLeafIds, declared } = trees;
    const knownHead = head?.treeId === treeId ? head : undefined;
    const own = ownOrigin(trees, name);
    const current = [...declared.keys(), `${name}/${treeId}`].filter(
      (origin) => origin !== own && origin.endsWith(`/${treeId}`),
    );
    const heads = await Promise.all([
      openOwn(trees, own, knownHead),
      ...[...new Set(current)].slice(-MAX_OTHERS).map((origin) => openOther(trees, origin)),
    ]);
    let newest = knownHead;
    for (const other of heads) {
      const isLarger = other && other.size > (newest?.size ?? -1);
      // A witness may have added its line.
      const isSame = other && other.size === newest?.size && other.origin === newest.origin;
      if (isLarger || isSame) newest = other;
    }
    // Until the tree that replaces it has a checkpoint.
    return newest ?? (head && sameLeafIds.includes(head.treeId) ? head : undefined);
  }

  async function readAndKeep(): Promise<SignedHead | undefined> {
    head = await readHead();
    readAt = performance.now();
    return head;
  }

  /** Callers at the same time share one read. */
  const readNewest = (): Promise<SignedHead | undefined> =>
    (reading ??= readAndKeep().finally(() => (reading = undefined)));

  /** As `readNewest`, with the error of a store that can't be read. */
  const readUsable = (): Promise<SignedHead | undefined> =>
    readNewest().catch((error: unknown) => {
      if (!isTurnlogError(error, 'proof_invalid')) throw error;
      throw storeUnavailableError(`The transparency log can't be used. ${error.message}`, error);
    });

  const reader = async (): Promise<TileReader | undefined> => {
    const isFresh = head && performance.now() - readAt < FRESH_MS;
    return (isFresh ? head : await readUsable())?.reader;
  };

  return {
    head: readNewest,
    doubt: () => doubt,
    read: async (path) => (await reader())?.read(path),
    readCheckpoint: async () => (await readUsable())?.note,
    beforeBundle: async (bundle) => (await reader())?.beforeBundle(bundle),
    state: async () => (await (await reader())?.state()) ?? { size: 0, checkpoint: undefined },
  };
}
